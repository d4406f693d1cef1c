// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"slices"
	"strconv"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Unreadable is the limit of a token whose limit is not a number within bounds:
// nobody new joins with it.
const Unreadable = -1

// JoinToken is what a join token is known by where its uses are counted.
type JoinToken struct {
	// ID is what clusterv1.AnnotationJoinedBy holds.
	ID string
	// Credential is what the API server calls it in requests.
	Credential string
	// Limit is how many clusters may join with it; zero means any number, and
	// Unreadable none.
	Limit int
}

// Approval is a certificate request that was approved, and not given up by its
// signer: its cluster has a certificate, or is about to get it.
type Approval struct {
	// Cluster is whom it is for.
	Cluster string
	// Credentials are those that it was sent with.
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

// CheckUses tells why a token cannot have a limit.
func CheckUses(n int) error {
	if n < 1 || n > clusterv1.MaxJoinTokenUses {
		return fmt.Errorf("it is for 1 cluster at least and for %d at most", clusterv1.MaxJoinTokenUses)
	}
	return nil
}

// Users are the clusters that used the token: those that the hub noted, by name
// with the id of the token that each joined by, and those of approved requests,
// which the hub may not have noted yet. A cluster counts once, however often it
// asked; renewals are sent with certificates and count for no token.
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

// Admits tells whether a cluster may join with the token that others used: one
// that used it before may again.
func (t JoinToken) Admits(cluster string, users map[string]bool) bool {
	return t.Limit == 0 || users[cluster] || len(users) < t.Limit
}

// UsedUp says why a token with a limit admits nobody new.
func (t JoinToken) UsedUp() string {
	switch {
	case t.Limit < 0:
		return fmt.Sprintf("it was sent with join token %s, whose limit of uses cannot be read", t.ID)
	case t.Limit == 1:
		return fmt.Sprintf("it was sent with join token %s, which is for 1 cluster, and another one has joined by it", t.ID)
	}
	return fmt.Sprintf("it was sent with join token %s, which is for %d clusters, and as many others have joined by it", t.ID, t.Limit)
}
