// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// origin is the kind of a request's sender, by the user name and the groups that the API
// server recorded. What the request itself claims means nothing: anyone may put the label of
// any cluster on a request.
type origin int

const (
	// person is any user who was granted the right to create requests.
	person origin = iota
	// ownAgent is an agent of the cluster the request is labelled with.
	ownAgent
	// joiner holds a join token.
	joiner
	// stranger is the agent of another cluster, which never has reason to ask for this one.
	stranger
)

// originOf returns who sent a request.
func originOf(r Request) origin {
	spec, label := &r.CSR.Spec, r.CSR.Labels[clusterv1.LabelClusterName]
	clusters, agent := identity.Clusters(spec.Groups)
	named, ok := identity.ParseUser(spec.Username)
	switch {
	case ok && !agent:
		// An agent's groups are those of its certificate; where they were not recorded, its
		// name counts.
		clusters, agent = []string{named.Cluster}, true
		fallthrough
	case agent:
		if len(clusters) == 1 && clusters[0] == label {
			return ownAgent
		}
		return stranger
	case identity.Joins(spec.Username, spec.Groups):
		return joiner
	}
	return person
}

// senderKey returns a key that distinguishes senders: by user, and by token where many share one
// user. An agent that renews is one sender whichever of its certificates it uses.
func senderKey(r Request) string {
	spec := &r.CSR.Spec
	switch originOf(r) {
	case ownAgent, stranger:
		return spec.Username
	case joiner, person:
	}
	return spec.Username + "\x00" + strings.Join(spec.Extra[clusterv1.ExtraCredentialID], "\x00")
}
