// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

func TestFieldsThatAreLeftOutAreNamed(t *testing.T) {
	const compact, split, hosted = "compact", "split", "hosted"
	bind := func(b operatorv1.BindConfiguration) func(*operatorv1.ClusterManagerSpec) {
		return func(s *operatorv1.ClusterManagerSpec) {
			s.DeployOption.Default = &operatorv1.DefaultClusterManagerConfiguration{
				WorkWebhookConfiguration: operatorv1.DefaultWebhookConfiguration{BindConfiguration: b},
			}
		}
	}
	for name, tc := range map[string]struct {
		change func(*operatorv1.ClusterManagerSpec)
		// want is part of the message by layout; no entry means that the field is in effect.
		want map[string]string
	}{
		"nothing": {func(*operatorv1.ClusterManagerSpec) {}, nil},
		"what the API fills in": {
			bind(operatorv1.BindConfiguration{Port: new(int32(9443)), HealthProbePort: new(int32(8000)), MetricsPort: new(int32(8080))}), nil,
		},
		"a port": {
			bind(operatorv1.BindConfiguration{Port: new(int32(10443))}),
			map[string]string{compact: "default.workWebhookConfiguration.bindConfiguration (one process", hosted: "bindConfiguration (it is that of another"},
		},
		"the network of the node": {
			bind(operatorv1.BindConfiguration{HostNetwork: true, HealthProbePort: new(int32(8001))}),
			map[string]string{compact: "one process serves", hosted: "another deployOption.mode"},
		},
		"a port of health in a pod": {
			bind(operatorv1.BindConfiguration{HealthProbePort: new(int32(8001))}),
			map[string]string{compact: "one process", hosted: "another", split: "bindConfiguration.healthProbePort (without hostNetwork"},
		},
		"no health": {
			bind(operatorv1.BindConfiguration{HostNetwork: true, HealthProbePort: new(int32(0))}),
			map[string]string{compact: "one process", hosted: "another", split: "bindConfiguration.healthProbePort (health is always"},
		},
		"a port of metrics": {
			bind(operatorv1.BindConfiguration{MetricsPort: new(int32(0))}),
			map[string]string{compact: "one process", hosted: "another", split: "bindConfiguration.metricsPort (health and metrics"},
		},
		"a port of a hosted webhook": {
			func(s *operatorv1.ClusterManagerSpec) {
				s.DeployOption.Hosted.RegistrationWebhookConfiguration.BindConfiguration.Port = new(int32(1))
			},
			map[string]string{hosted: "hosted.registrationWebhookConfiguration.bindConfiguration (one process"},
		},
		"an image": {
			func(s *operatorv1.ClusterManagerSpec) { s.PlacementImagePullSpec = "example.com/placement:1" },
			map[string]string{compact: "placementImagePullSpec (the compact layout", hosted: "placementImagePullSpec (one process"},
		},
		"nodes": {func(s *operatorv1.ClusterManagerSpec) { s.NodePlacement.NodeSelector = map[string]string{"a": "b"} }, map[string]string{compact: "nodePlacement"}},
		"a default": {func(s *operatorv1.ClusterManagerSpec) {
			s.WorkImagePullSpec = "quay.io/open-cluster-management/work:v1"
		}, nil},
		"resources": {func(s *operatorv1.ClusterManagerSpec) {
			s.ResourceRequirement = &operatorv1.ResourceRequirement{
				Type: operatorv1.ResourceQosClassResourceRequirement, ResourceRequirements: &corev1.ResourceRequirements{},
			}
		}, map[string]string{compact: "resourceRequirement"}},
		"other transports": {
			func(s *operatorv1.ClusterManagerSpec) {
				s.ServerConfiguration = &operatorv1.ServerConfiguration{ImagePullSpec: "example.com/server"}
			},
			map[string]string{compact: "serverConfiguration", split: "serverConfiguration", hosted: "serverConfiguration"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, layout := range []string{compact, split, hosted} {
				s := state(t, func(s *State) {
					switch layout {
					case split:
						s.Components = []Component{{Name: "c", Found: true}}
					case hosted:
						s.Hosted = true
					}
					s.ClusterManager.Spec.DeployOption.Hosted = &operatorv1.HostedClusterManagerConfiguration{}
					tc.change(&s.ClusterManager.Spec)
					if layout != hosted {
						s.ClusterManager.Spec.DeployOption.Hosted = nil
					}
				})
				c := apimeta.FindStatusCondition(Decide(s).Object.(*operatorv1.ClusterManager).Status.Conditions, "SpecSupported")
				if tc.want[layout] == "" {
					require.Nil(t, c, layout)
					continue
				}
				require.NotNil(t, c, layout)
				require.Equal(t, "NotSupported", c.Reason)
				require.Contains(t, c.Message, tc.want[layout], layout)
			}
		})
	}
}

// TestPodsThatTheDeploymentHasAreInEffect, for an installer that is repeated makes it what the spec says.
func TestPodsThatTheDeploymentHasAreInEffect(t *testing.T) {
	s := state(t, func(s *State) {
		s.ClusterManager.Spec.NodePlacement.NodeSelector = map[string]string{"a": "b"}
		s.Pod = &shared.Pod{}
	})
	told := func() *metav1.Condition {
		return apimeta.FindStatusCondition(Decide(s).Object.(*operatorv1.ClusterManager).Status.Conditions, "SpecSupported")
	}
	require.Contains(t, told().Message, "nodePlacement (the compact layout is one Deployment, which its installer changes: repeat kubectl ocm hub init")
	s.Pod.NodeSelector = map[string]string{"a": "b"}
	require.Nil(t, told())
}
