// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// BootstrapUser is the user name of the account whose tokens allow any cluster to ask to
// join, and nothing more.
const BootstrapUser = "system:serviceaccount:" + operatorv1.NamespaceOperator + ":" + clusterv1.BootstrapServiceAccount

// Joins reports whether a user is a holder of a join token: of one that this project makes, or
// of a bootstrap token of Kubernetes.
func Joins(user string, groups []string) bool {
	return user == BootstrapUser || slices.Contains(groups, clusterv1.GroupBootstrap) || len(BootstrapClusters(groups)) > 0
}

// BootstrapClusters returns the clusters that a Kubernetes bootstrap token is for, which
// its groups name, each once; none means any cluster. A request keeps these groups after
// the token's Secret is gone.
func BootstrapClusters(groups []string) []string {
	var out []string
	for _, g := range groups {
		if name, ok := strings.CutPrefix(g, clusterv1.GroupPrefixBootstrapCluster); ok && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// Unreadable is the limit of a token whose limit is not a number within bounds: no new
// cluster joins with it.
const Unreadable = -1

// JoinToken identifies a join token where its uses are counted.
type JoinToken struct {
	// ID is what clusterv1.AnnotationJoinedBy holds.
	ID string
	// Credential is the token's credential id in the API server's requests.
	Credential string
	// Limit is how many clusters may join with it; zero means any number, and Unreadable
	// none.
	Limit int
}

// Approval is a certificate request that was approved and has not failed at its signer:
// its cluster has a certificate, or is about to get it.
type Approval struct {
	// Cluster is the cluster that it is for.
	Cluster string
	// Credentials are the ids of the credentials that it was sent with.
	Credentials []string
}

// ParseUses reads the limit from the Secret of a join token.
func ParseUses(text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || CheckUses(n) != nil {
		return Unreadable
	}
	return n
}

// CheckUses returns why a token cannot have the limit n, or nil.
func CheckUses(n int) error {
	if n < 1 || n > clusterv1.MaxJoinTokenUses {
		return fmt.Errorf("it is for 1 cluster at least and for %d at most", clusterv1.MaxJoinTokenUses)
	}
	return nil
}

// Users returns the clusters that used the token: those that the hub recorded, by name
// with the id of the token that each joined with, and those of approved requests, which
// the hub may not have recorded yet. A cluster counts once, however often it asked;
// renewals are sent with certificates and count for no token.
func (t JoinToken) Users(noted map[string]string, approved []Approval) map[string]bool {
	out := map[string]bool{}
	for cluster, id := range noted {
		if id != "" && id == t.ID {
			out[cluster] = true
		}
	}
	for _, a := range approved {
		if t.Credential != "" && slices.Contains(a.Credentials, t.Credential) {
			out[a.Cluster] = true
		}
	}
	return out
}

// Admits reports whether a cluster may join with the token, given the clusters that used
// it: one that used it before may again.
func (t JoinToken) Admits(cluster string, users map[string]bool) bool {
	return t.Limit == 0 || users[cluster] || len(users) < t.Limit
}

// UsedUp returns why a token with a limit admits no new cluster.
func (t JoinToken) UsedUp() string {
	switch {
	case t.Limit < 0:
		return fmt.Sprintf("it was sent with join token %s, whose limit of uses cannot be read", t.ID)
	case t.Limit == 1:
		return fmt.Sprintf("it was sent with join token %s, which is for 1 cluster, and another one has joined with it", t.ID)
	}
	return fmt.Sprintf("it was sent with join token %s, which is for %d clusters, and as many others have joined with it", t.ID, t.Limit)
}
