// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/proxy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// leads checks the API that leads to the clusters. While an APIService that exists is not available, Kubernetes cannot
// list all kinds, so that no namespace of the hub can be deleted.
func (c *checking) leads(ctx context.Context) ([]Finding, error) {
	service, err := c.o.Hub.Client.Resource(fleet.APIServices).Get(ctx, connectv1alpha1.APIService, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, fleet.Explain("reading apiservice "+connectv1alpha1.APIService, c.o.Hub, err)
	}
	cm, err := typed.Get[operatorv1.ClusterManager](ctx, c.o.Hub.Client, fleet.ClusterManagers, "", operatorv1.DefaultClusterManagerName)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fleet.Explain("reading clustermanager/"+operatorv1.DefaultClusterManagerName, c.o.Hub, err)
	}
	on := err == nil && hasGate(cm)
	if missing {
		if !on {
			return nil, nil
		}
		f := failure(CodeHubLeads, "it does not lead to its clusters", "its feature gate "+connectv1alpha1.GateClusterProxy+
			" is on, but there is no apiservice "+connectv1alpha1.APIService, fleet.HubStatus.On(c.o.Hub))
		if why := apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionSpecSupported); why != nil {
			f.Cause += "; " + fleet.OneLine(why.Message)
		}
		return []Finding{f}, nil
	}
	available := apimeta.FindStatusCondition(fleet.ConditionsOf(service), "Available")
	if available != nil && available.Status == metav1.ConditionTrue {
		return good(CodeHubLeads, "leads to its clusters"), nil
	}
	const waits = "; while it is so, namespaces of the hub cannot be deleted"
	f := failure(CodeHubLeads, "apiservice "+connectv1alpha1.APIService+" is not available", "nothing is known of it"+waits, fleet.HubStatus.On(c.o.Hub))
	if available != nil {
		f.Cause = fleet.OneLine(available.Reason+": "+available.Message) + waits
	}
	if !on {
		f.Cause += "; nobody serves it, because the feature gate " + connectv1alpha1.GateClusterProxy + " is off"
		f.Fix = DropService.On(c.o.Hub, "name", connectv1alpha1.APIService)
	}
	return []Finding{f}, nil
}

// hasGate reports whether the hub is to lead to its clusters.
func hasGate(cm *operatorv1.ClusterManager) bool {
	c := cm.Spec.RegistrationConfiguration
	return c != nil && isOn(c.FeatureGates, connectv1alpha1.GateClusterProxy)
}

// addOnProxy tells of the add-on cluster-proxy, which leads to the clusters in another way: what it exposes is not what
// this hub leads to, and what its older releases read has no effect.
func (c *checking) addOnProxy(ctx context.Context) ([]Finding, error) {
	of := func(resource string) dynamic.ResourceInterface {
		return c.o.Hub.Client.Resource(connectv1alpha1.GroupVersionAddOn.WithResource(resource))
	}
	resolvers, err := of(connectv1alpha1.ResourceProxyResolvers).List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fleet.Explain("listing "+connectv1alpha1.ResourceProxyResolvers, c.o.Hub, err)
	}
	var found []Finding
	if err == nil {
		for _, u := range resolvers.Items {
			set, _, _ := unstructured.NestedString(u.Object, "spec", "managedClusterSelector", "managedClusterSet", "name")
			found = append(found, warning(CodeHubAddOnProxy, "managedproxyserviceresolver/"+u.GetName()+" has no effect",
				"only old releases of the add-on "+connectv1alpha1.NameProxyConfiguration+" read it; Services are exposed by the configmap "+
					connectv1alpha1.ConfigMapExposedServices, DropResolver.On(c.o.Hub, "name", u.GetName(), "set", set)))
		}
	}
	settings, err := of(connectv1alpha1.ResourceProxyConfigurations).Get(ctx, connectv1alpha1.NameProxyConfiguration, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return found, nil
	}
	if err != nil {
		return nil, fleet.Explain("reading managedproxyconfiguration/"+connectv1alpha1.NameProxyConfiguration, c.o.Hub, err)
	}
	beside, err := c.besideAddOn(ctx, settings)
	return append(found, beside...), err
}

// besideAddOn tells what the hub and the add-on each lead to, if both lead to clusters. That is not a fault.
func (c *checking) besideAddOn(ctx context.Context, settings *unstructured.Unstructured) ([]Finding, error) {
	cm, err := typed.Get[operatorv1.ClusterManager](ctx, c.o.Hub.Client, fleet.ClusterManagers, "", operatorv1.DefaultClusterManagerName)
	if apierrors.IsNotFound(err) || err == nil && !hasGate(cm) {
		return nil, nil
	}
	if err != nil {
		return nil, fleet.Explain("reading clustermanager/"+operatorv1.DefaultClusterManagerName, c.o.Hub, err)
	}
	f := good(CodeHubAddOnProxy, "leads to its clusters beside the add-on %s", connectv1alpha1.NameProxyConfiguration)
	f[0].Cause = "clients of the add-on go its own way; the way of this hub needs nothing of it, and leads to Services that each cluster lists itself"
	namespace := proxy.NamespaceOfAddOn(settings)
	_, err = c.o.Hub.Client.Resource(fleet.ConfigMaps).Namespace(namespace).Get(ctx, connectv1alpha1.ConfigMapExposedServices, metav1.GetOptions{})
	switch {
	case err == nil:
		f[0].Fix = CarryServices.On(c.o.Hub)
	case !apierrors.IsNotFound(err):
		return nil, fleet.Explain("reading configmap "+namespace+"/"+connectv1alpha1.ConfigMapExposedServices, c.o.Hub, err)
	}
	return f, nil
}

// tunnel returns the finding for an available cluster to which its hub does not lead, although the hub leads to clusters.
func (c *checking) tunnel(info cluster.Info, mc *clusterv1.ManagedCluster) []Finding {
	if info.Status != cluster.Available {
		return nil // which has its own finding
	}
	cause := cluster.ConditionText(mc.Status.Conditions, connectv1alpha1.ConditionTunnelConnected)
	switch info.Tunnel {
	case cluster.Lost:
		return []Finding{warning(CodeClusterTunnel, "it is not reached through the hub: its tunnel is down", cause,
			CheckSpoke.With("context", c.contextOf(mc), "hub", c.o.Hub.Context))}
	case cluster.Never:
		return []Finding{warning(CodeClusterTunnel, "it is not reached through the hub: its agent has opened no tunnel", cause,
			proxy.OpenAgent.With("cluster", info.Name, "context", c.contextOf(mc), "hub", c.o.Hub.Context))}
	}
	return nil
}
