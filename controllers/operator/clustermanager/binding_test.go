// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// bound returns a rendering whose webhook of works has that configuration.
func bound(b operatorv1.BindConfiguration) rendering {
	return usual(func(r *rendering) {
		r.Features.NetworkPolicies = true
		r.Spec.DeployOption.Default = &operatorv1.DefaultClusterManagerConfiguration{
			WorkWebhookConfiguration: operatorv1.DefaultWebhookConfiguration{BindConfiguration: b},
		}
	})
}

func TestPortsOfWebhooks(t *testing.T) {
	deployment := func(r rendering, name string) *appsv1.Deployment {
		d := rendered[appsv1.Deployment](t, r, "Deployment", hub.Name+"-"+name)
		require.NotNil(t, d)
		return d
	}
	r := bound(operatorv1.BindConfiguration{Port: new(int32(10443)), HealthProbePort: new(int32(8000)), MetricsPort: new(int32(8080))})
	d := deployment(r, "work-webhook")
	c := d.Spec.Template.Spec.Containers[0]
	require.Contains(t, c.Args, "--port=10443")
	require.Equal(t, int32(10443), c.Ports[1].ContainerPort)
	require.Equal(t, int32(8443), c.LivenessProbe.HTTPGet.Port.IntVal, "nothing collides in a pod")
	require.False(t, d.Spec.Template.Spec.HostNetwork)
	require.Nil(t, d.Spec.Strategy.RollingUpdate)
	s := rendered[corev1.Service](t, r, "Service", hub.WorkService)
	require.Equal(t, int32(9443), s.Spec.Ports[0].Port)
	require.Equal(t, int32(10443), s.Spec.Ports[0].TargetPort.IntVal)
	policy := rendered[networkingv1.NetworkPolicy](t, r, "NetworkPolicy", hub.IngressPolicy)
	var ports []int32
	for _, p := range policy.Spec.Ingress[0].Ports {
		ports = append(ports, p.Port.IntVal)
	}
	require.Equal(t, []int32{9443, 10443}, ports)
	other := deployment(r, "registration-webhook")
	require.Equal(t, int32(9443), other.Spec.Template.Spec.Containers[0].Ports[1].ContainerPort)

	r = bound(operatorv1.BindConfiguration{HostNetwork: true, HealthProbePort: new(int32(8001))})
	d = deployment(r, "work-webhook")
	c = d.Spec.Template.Spec.Containers[0]
	require.Contains(t, c.Args, "--health-probe-port=8001")
	require.Equal(t, int32(8001), c.ReadinessProbe.HTTPGet.Port.IntVal)
	require.True(t, d.Spec.Template.Spec.HostNetwork)
	require.Equal(t, corev1.DNSClusterFirstWithHostNet, d.Spec.Template.Spec.DNSPolicy)
	require.Equal(t, "0 1", d.Spec.Strategy.RollingUpdate.MaxSurge.String()+" "+d.Spec.Strategy.RollingUpdate.MaxUnavailable.String())
	require.False(t, deployment(r, "placement-controller").Spec.Template.Spec.HostNetwork)
	r.Replicas = 4
	require.Equal(t, "25%", deployment(r, "work-webhook").Spec.Strategy.RollingUpdate.MaxUnavailable.String())
}

func TestPortsThatCannotBeUsed(t *testing.T) {
	for name, tc := range map[string]struct {
		given operatorv1.BindConfiguration
		want  string
	}{
		"no port":             {operatorv1.BindConfiguration{Port: new(int32(0))}, "port=0: choose"},
		"a negative one":      {operatorv1.BindConfiguration{Port: new(int32(-1))}, "port=-1: choose"},
		"that of health":      {operatorv1.BindConfiguration{Port: new(int32(8443))}, "port=8443 is that of health"},
		"that of health, too": {operatorv1.BindConfiguration{HostNetwork: true, HealthProbePort: new(int32(9443))}, "port=9443 is that of health"},
		"health too high":     {operatorv1.BindConfiguration{HostNetwork: true, HealthProbePort: new(int32(70000))}, "healthProbePort=70000"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := bound(tc.given).objects()
			require.ErrorContains(t, err, "spec.deployOption.default.workWebhookConfiguration.bindConfiguration.")
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestAPortThatCannotBeUsedIsNamed(t *testing.T) {
	spec := bound(operatorv1.BindConfiguration{Port: new(int32(0))}).Spec
	for name, tc := range map[string]struct {
		change func(*State)
		want   string
	}{
		"a hub that runs": {func(*State) {}, operatorv1.ReasonRuntimeResourceApplyFailed},
		"a new one":       {func(s *State) { s.Unready = "the Deployments of the webhooks to be available" }, operatorv1.ReasonRuntimeResourceApplyFailed},
		"compact layout":  {func(s *State) { s.Components = nil }, operatorv1.ReasonClusterManagerApplied},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(state(t, func(s *State) {
				s.ClusterManager.Spec, s.Components = spec, []Component{{Name: "c", Found: true}}
				tc.change(s)
			}))
			c := apimeta.FindStatusCondition(d.Object.(*operatorv1.ClusterManager).Status.Conditions, operatorv1.ConditionApplied)
			require.NotNil(t, c)
			require.Equal(t, tc.want, c.Reason, c.Message)
			require.Equal(t, tc.want == operatorv1.ReasonRuntimeResourceApplyFailed, strings.Contains(c.Message, "bindConfiguration.port=0"))
		})
	}
}
