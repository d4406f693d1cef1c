// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	proxy "github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

func TestPoliciesOfTheComponents(t *testing.T) {
	r := usual(func(r *rendering) { r.Features.NetworkPolicies, r.APIServer = true, []int64{6443, 35001} })
	var apps []string
	for _, c := range components {
		apps = append(apps, c.app)
	}
	all := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: apps}}}
	ports := func(list []networkingv1.NetworkPolicyPort) []int {
		var out []int
		for _, p := range list {
			out = append(out, p.Port.IntValue())
		}
		return out
	}
	policy := func(name string) networkingv1.NetworkPolicySpec {
		t.Helper()
		p := rendered[networkingv1.NetworkPolicy](t, r, "NetworkPolicy", name)
		require.NotNil(t, p, name)
		require.Equal(t, hub.ComponentNamespace, p.Namespace)
		return p.Spec
	}
	for _, name := range []string{"default-deny-all", "allow-egress", "allow-intra-namespace", "allow-prometheus-ingress"} {
		require.Equal(t, all, policy(name).PodSelector, name)
	}
	denied := policy("default-deny-all")
	require.Len(t, denied.PolicyTypes, 2)
	require.Empty(t, denied.Ingress)
	require.Empty(t, denied.Egress)
	egress := policy("allow-egress").Egress
	require.Empty(t, egress[0].To, "any destination")
	require.Equal(t, []int{53, 53, 5353, 5353, 443, 6443, 35001}, ports(egress[0].Ports), "every port of the API server, once")
	within := policy("allow-intra-namespace")
	require.Equal(t, &all, within.Ingress[0].From[0].PodSelector)
	require.Equal(t, &all, within.Egress[0].To[0].PodSelector)
	called := policy("allow-hub-ingress")
	require.Equal(t, []int{9443}, ports(called.Ingress[0].Ports))
	for _, c := range components {
		listed := slices.Contains(called.PodSelector.MatchExpressions[0].Values, c.app)
		require.Equal(t, c.isWebhook() || c.name == "placement-controller", listed, c.name)
	}
	require.Equal(t, []int{8443}, ports(policy("allow-prometheus-ingress").Ingress[0].Ports))

	objects, err := r.objects()
	require.NoError(t, err)
	require.Equal(t, "default-deny-all", objects[len(objects)-1].GetName(), "what is allowed comes first, and goes last")
	objects, err = usual(nil).objects()
	require.NoError(t, err)
	require.False(t, slices.ContainsFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "NetworkPolicy" }))
}

// TestThePolicyOfTheOneProcess: its one policy selects the pods of the Deployment, allows what
// these listen on, and goes when the layout is switched.
func TestThePolicyOfTheOneProcess(t *testing.T) {
	compact := func(r *rendering) { r.Split, r.Features.NetworkPolicies, r.APIServer = nil, true, []int64{35001} }
	objects, err := usual(compact).objects()
	require.NoError(t, err)
	require.Len(t, objects, 1)
	p := rendered[networkingv1.NetworkPolicy](t, usual(compact), "NetworkPolicy", hub.ProcessPolicy)
	installed, err := hub.Objects(hub.Options{Version: "v1"})
	require.NoError(t, err)
	i := slices.IndexFunc(installed, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Deployment" })
	d, err := typed.FromUnstructured[appsv1.Deployment](installed[i])
	require.NoError(t, err)
	require.Equal(t, d.Namespace, p.Namespace)
	require.Equal(t, d.Spec.Selector, &p.Spec.PodSelector)
	require.Len(t, p.Spec.PolicyTypes, 2)
	var listens, called, reached []int
	for _, port := range d.Spec.Template.Spec.Containers[0].Ports {
		listens = append(listens, int(port.ContainerPort))
	}
	for _, port := range p.Spec.Ingress[0].Ports {
		called = append(called, port.Port.IntValue())
	}
	for _, port := range p.Spec.Egress[0].Ports {
		reached = append(reached, port.Port.IntValue())
	}
	require.Equal(t, listens, called)
	require.Equal(t, []int{53, 53, 5353, 5353, 443, 6443, 35001}, reached)
	require.Empty(t, p.Spec.Egress[0].To)
	require.Len(t, p.Spec.Egress[1].Ports, 1)
	require.Equal(t, proxy.Port, p.Spec.Egress[1].Ports[0].Port.IntValue())
	require.Equal(t, []networkingv1.NetworkPolicyPeer{{PodSelector: d.Spec.Selector}}, p.Spec.Egress[1].To, "only the other replicas")
	all, err := everything(new(DefaultSplit()))
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(all, func(u *unstructured.Unstructured) bool { return u.GetName() == hub.ProcessPolicy }))

	_, err = ParseGates(map[string]string{gateNetworkPolicies: "true"})
	require.ErrorContains(t, err, "not supported", "no component serves it")
}
