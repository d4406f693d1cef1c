// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// HostedText is said of a hub whose process runs on another cluster.
const HostedText = "its process runs on another cluster"

// HostedBy returns the ClusterManager of another cluster that runs a hub; empty if the hub runs on
// its own cluster, whatever its ClusterManager says of that, or there is none.
func HostedBy(ctx context.Context, c *fleet.Cluster) (string, error) {
	cm, err := typed.Get[operatorv1.ClusterManager](ctx, c.Client, fleet.ClusterManagers, "", operatorv1.DefaultClusterManagerName)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fleet.Explain("reading the clustermanager of "+c.String(), c, err)
	}
	name, _, _ := strings.Cut(cm.Annotations[operatorv1.AnnotationHostedBy], "/")
	if name == "" {
		return "", nil
	}
	if own, err := Deployment(ctx, c); err != nil || own != nil {
		return "", err
	}
	return name, nil
}

// refuseHosted refuses to change a hub whose process runs on another cluster: it is changed there.
func refuseHosted(ctx context.Context, c *fleet.Cluster) error {
	by, err := HostedBy(ctx, c)
	if err != nil || by == "" {
		return err
	}
	return fleet.Refuse("the hub of "+c.String()+" is hosted", HostedText+", as clustermanager/"+by+" there says",
		ChangeHosted.With("name", by))
}

// Hosts returns the ClusterManagers of hubs that run on a cluster without being its own.
func Hosts(ctx context.Context, c *fleet.Cluster) ([]operatorv1.ClusterManager, error) {
	all, err := typed.List[operatorv1.ClusterManager](ctx, c.Client, fleet.ClusterManagers, "", metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fleet.Explain("listing clustermanagers", c, err)
	}
	return slices.DeleteFunc(all, func(cm operatorv1.ClusterManager) bool { return cm.Name == operatorv1.DefaultClusterManagerName }), nil
}

// refuseHosting refuses to remove the operator of hubs of other clusters.
func refuseHosting(ctx context.Context, c *fleet.Cluster) error {
	hosts, err := Hosts(ctx, c)
	if err != nil || len(hosts) == 0 {
		return err
	}
	var names []string
	for i := range hosts {
		names = append(names, hosts[i].Name)
	}
	return fleet.Refuse(c.String()+" runs the hubs of other clusters", "clustermanagers "+fleet.Listed(names),
		RemoveHosted.On(c, "name", names[0]))
}

// hosted returns the process of a hosted hub, as far as the hub knows it.
func (o *StatusOptions) hosted(ctx context.Context, r *fleet.Run) ([]Component, error) {
	out := Component{Name: "hub", Ready: cluster.Count{Total: 1}, Version: "-", Image: "-", Message: HostedText}
	why, err := Idle(ctx, o.Hub, r.Now())
	if why == "" {
		out.Ready.Good = 1
	}
	return []Component{out}, err
}
