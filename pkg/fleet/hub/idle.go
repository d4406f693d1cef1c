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

// componentLeases are held by the leading pods of the components of the split layout, by
// Deployment.
var componentLeases = map[string]string{
	"cluster-manager-registration-controller": "registration-controller-lock", "cluster-manager-placement-controller": "placement-lock",
	"cluster-manager-addon-manager-controller": "manager-lock", "cluster-manager-work-controller": "work-manager-lock",
}

// Idle returns a message when no process of our hub, or of a component of it, has renewed its
// lease for a while, "" otherwise. The process need not be gone for that: it may hang.
func Idle(ctx context.Context, c *fleet.Cluster, local time.Time) (string, error) {
	why, err := idle(ctx, c, operatorv1.NamespaceOperator, hubLease, local)
	if why != "" || err != nil {
		return why, err
	}
	components, err := ownComponents(ctx, c)
	if err != nil {
		return "", err
	}
	for i := range components {
		lease, age := componentLeases[components[i].GetName()], c.Now(local).Sub(components[i].GetCreationTimestamp().Time)
		if lease == "" || age < hubLeaseLimit {
			continue // it has no leader, or is taking over from that of an earlier Deployment
		}
		if why, err := idle(ctx, c, operatorv1.NamespaceHub, lease, local); why != "" || err != nil {
			return why, err
		}
	}
	return "", nil
}

func idle(ctx context.Context, c *fleet.Cluster, namespace, name string, local time.Time) (string, error) {
	lease, err := c.Client.Resource(fleet.Leases).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "no process of the hub has ever taken the lease " + name, nil
	}
	if err != nil {
		return "", fleet.Explain("reading lease "+namespace+"/"+name, c, err)
	}
	at := cluster.Arrived(lease)
	if at == nil {
		return "the lease " + name + " has no renewal time", nil
	}
	if age := c.Now(local).Sub(at.Time); age > hubLeaseLimit {
		return fmt.Sprintf("no process of the hub has renewed the lease %s for %s", name, duration.HumanDuration(age)), nil
	}
	return "", nil
}
