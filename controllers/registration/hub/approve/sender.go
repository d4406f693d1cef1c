// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// origin is what kind of sender a request has, by the user name and the groups
// that the API server put on it. What the request says of itself tells nothing:
// everybody may put the label of any cluster on a request.
type origin int

const (
	// person is everybody whom an administrator gave the right to ask.
	person origin = iota
	// ownAgent is an agent of the cluster that the request is labelled with.
	ownAgent
	// joiner holds a join token.
	joiner
	// stranger is the agent of another cluster, which never asks for this one.
	stranger
)

// originOf tells who sent a request.
func originOf(r Request) origin {
	spec, label := &r.CSR.Spec, r.CSR.Labels[clusterv1.LabelClusterName]
	clusters, agent := identity.Clusters(spec.Groups)
	named, ok := identity.ParseUser(spec.Username)
	switch {
	case ok && !agent:
		// The groups of an agent are those of its certificate; where they are not on
		// record its name counts.
		clusters, agent = []string{named.Cluster}, true
		fallthrough
	case agent:
		if len(clusters) == 1 && clusters[0] == label {
			return ownAgent
		}
		return stranger
	case spec.Username == identity.BootstrapUser, slices.Contains(spec.Groups, clusterv1.GroupBootstrap), len(identity.BootstrapClusters(spec.Groups)) > 0:
		return joiner
	}
	return person
}

// sender tells requests of one sender from those of others: by the user, and by
// the token where one user stands for many. An agent that renews is one sender
// whichever of its certificates it shows.
func sender(r Request) string {
	spec := &r.CSR.Spec
	switch originOf(r) {
	case ownAgent, stranger:
		return spec.Username
	case joiner, person:
	}
	return spec.Username + "\x00" + strings.Join(spec.Extra[clusterv1.ExtraCredentialID], "\x00")
}
