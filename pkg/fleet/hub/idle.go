// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
)

const (
	// hubLease is held by the process of our hub that runs the loops.
	hubLease = "clustermanager-lock"
	// hubLeaseLimit is twice the time the process keeps it without a renewal.
	hubLeaseLimit = 30 * time.Second
)

// Idle returns a message when no process of our hub has renewed its lease for a while, ""
// otherwise. The process need not be gone for that: it may hang.
func Idle(ctx context.Context, c *fleet.Cluster, local time.Time) (string, error) {
	lease, err := c.Client.Resource(fleet.Leases).Namespace(operatorv1.NamespaceOperator).Get(ctx, hubLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "no process of the hub has ever taken the lease " + hubLease, nil
	}
	if err != nil {
		return "", fleet.Explain("reading lease "+operatorv1.NamespaceOperator+"/"+hubLease, c, err)
	}
	at := cluster.Arrived(lease)
	if at == nil {
		return "the lease " + hubLease + " has no renewal time", nil
	}
	if age := c.Now(local).Sub(at.Time); age > hubLeaseLimit {
		return fmt.Sprintf("no process of the hub has renewed the lease %s for %s", hubLease, duration.HumanDuration(age)), nil
	}
	return "", nil
}
