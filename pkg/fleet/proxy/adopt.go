// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/internal/service"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// AdoptOptions say what of the add-on cluster-proxy is to be exposed through the hub itself.
type AdoptOptions struct {
	// Hub is the hub, on which the add-on is installed.
	Hub *fleet.Cluster
	// Set is the cluster set that the list is for; empty for what the add-on exposes on every cluster.
	Set string
	// Namespace is that of the agent on the clusters.
	Namespace string
}

// Adopted is a list for managed clusters.
type Adopted struct {
	// List is the ConfigMap for the namespace of the agent.
	List map[string]any
	// Left are the parts of what the add-on exposes that the list does not have.
	Left []fleet.Note
}

// adoption is a run of Adopt.
type adoption struct {
	AdoptOptions
	data map[string]string
	left []fleet.Note
}

// Adopt reads what the add-on cluster-proxy exposes, and returns it as a list that managed clusters take. It writes
// nothing: what a cluster exposes is decided there.
func Adopt(ctx context.Context, o AdoptOptions) (*Adopted, error) {
	a := &adoption{AdoptOptions: o, data: map[string]string{}}
	if err := a.checkSet(ctx); err != nil {
		return nil, err
	}
	if err := a.settings(ctx); err != nil {
		return nil, err
	}
	if err := a.resolvers(ctx); err != nil {
		return nil, err
	}
	if len(a.data) == 0 {
		why := "there is no configmap " + connectv1alpha1.ConfigMapExposedServices + " of it with entries"
		for _, n := range a.left {
			why += "; " + n.Text
		}
		e := &fleet.Error{Message: "the add-on " + connectv1alpha1.NameProxyConfiguration + " exposes nothing that a cluster could take", Cause: why}
		if len(a.left) > 0 {
			e.Fix = a.left[0].Fix
		}
		return nil, e
	}
	if _, err := service.ReadList(a.data); err != nil {
		return nil, fleet.Fail("what the add-on exposes makes no list for a cluster", err, nil)
	}
	return &Adopted{Left: a.left, List: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": o.Namespace, "name": connectv1alpha1.ConfigMapExposedServices},
		"data":     a.data,
	}}, nil
}

// NamespaceOfAddOn returns where the add-on cluster-proxy runs on the hub, as its ManagedProxyConfiguration says.
func NamespaceOfAddOn(settings *unstructured.Unstructured) string {
	namespace, _, _ := unstructured.NestedString(settings.Object, "spec", "proxyServer", "namespace")
	return cmp.Or(namespace, connectv1alpha1.NamespaceAddOn)
}

func (a *adoption) of(resource string) dynamic.ResourceInterface {
	return a.Hub.Client.Resource(connectv1alpha1.GroupVersionAddOn.WithResource(resource))
}

// checkSet refuses a set that the hub does not have.
func (a *adoption) checkSet(ctx context.Context) error {
	if a.Set == "" {
		return nil
	}
	sets, err := naming.Sets(ctx, a.Hub)
	if err == nil && !slices.Contains(sets, a.Set) {
		return naming.NoSet(a.Set, a.Hub)
	}
	return err
}

// settings reads the list of the add-on that its ManagedProxyConfiguration leads to.
func (a *adoption) settings(ctx context.Context) error {
	settings, err := a.of(connectv1alpha1.ResourceProxyConfigurations).Get(ctx, connectv1alpha1.NameProxyConfiguration, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fleet.Explain("reading managedproxyconfiguration/"+connectv1alpha1.NameProxyConfiguration, a.Hub, err)
	}
	namespace := NamespaceOfAddOn(settings)
	list, err := typed.Get[corev1.ConfigMap](ctx, a.Hub.Client, fleet.ConfigMaps, namespace, connectv1alpha1.ConfigMapExposedServices)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fleet.Explain("reading configmap "+namespace+"/"+connectv1alpha1.ConfigMapExposedServices, a.Hub, err)
	}
	for _, key := range slices.Sorted(maps.Keys(list.Data)) {
		taken, left, err := service.Sift(list.Data[key])
		if err != nil {
			left = append(left, err)
		}
		for _, why := range left {
			a.leave(nil, "configmap %s/%s, key %s: %s", namespace, list.Name, key, fleet.OneLine(why.Error()))
		}
		if err := a.take(key, taken); err != nil {
			return err
		}
	}
	return nil
}

// resolvers reads what releases of the add-on exposed that had an object for each Service. Each is for the clusters of
// one set, and exposes every port.
func (a *adoption) resolvers(ctx context.Context) error {
	list, err := a.of(connectv1alpha1.ResourceProxyResolvers).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fleet.Explain("listing "+connectv1alpha1.ResourceProxyResolvers, a.Hub, err)
	}
	for i := range list.Items {
		u := &list.Items[i]
		at := func(fields ...string) string {
			value, _, _ := unstructured.NestedString(u.Object, append([]string{"spec"}, fields...)...)
			return value
		}
		name, set := "managedproxyserviceresolver/"+u.GetName(), at("managedClusterSelector", "managedClusterSet", "name")
		s, ok := ParseService(at("serviceSelector", "serviceRef", "namespace"), at("serviceSelector", "serviceRef", "name"))
		switch {
		case at("managedClusterSelector", "type") != "ManagedClusterSet" || set == "":
			a.leave(nil, "%s selects its clusters by something else than a cluster set", name)
		case at("serviceSelector", "type") != "ServiceRef" || !ok || s.Port != 0 || s.Protocol != "":
			a.leave(nil, "%s names no Service", name)
		case a.Set == "":
			a.leave(AdoptSet.On(a.Hub, "set", set), "%s is for the clusters of the set %s", name, set)
		case a.Set == set:
			if err := a.take("resolver."+u.GetName(), []service.Target{s.target()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// take adds entries below a key of the list.
func (a *adoption) take(key string, entries []service.Target) error {
	if len(entries) == 0 {
		return nil
	}
	out := make([]Service, 0, len(entries))
	for _, t := range entries {
		out = append(out, Service{Namespace: t.Namespace, Name: t.Name, Port: t.Port, Protocol: t.Scheme})
	}
	text, err := yaml.Marshal(out)
	if err != nil {
		return fmt.Errorf("encoding the list: %w", err)
	}
	a.data[key] = string(text)
	return nil
}

// leave names what the list does not have.
func (a *adoption) leave(fix fleet.Fix, format string, args ...any) {
	a.left = append(a.left, fleet.Note{Text: fmt.Sprintf(format, args...), Fix: fix})
}
