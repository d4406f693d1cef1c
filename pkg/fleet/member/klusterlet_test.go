// SPDX-License-Identifier: Apache-2.0

package member

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestEveryClusterHasANameForItsHostedKlusterlet(t *testing.T) {
	require.Equal(t, "klusterlet-edge", HostedFor("edge"))
	seen := map[string]bool{}
	for _, cluster := range []string{"a", strings.Repeat("a", 22), strings.Repeat("a", 23), strings.Repeat("a", 63), strings.Repeat("a-", 31) + "b"} {
		name := HostedFor(cluster)
		require.NoError(t, CheckHosted(name), cluster)
		require.False(t, seen[name], name)
		seen[name] = true
	}
	for _, name := range []string{"default", "kube-system", "open-cluster-management", "a.b", strings.Repeat("a", 34)} {
		require.Error(t, CheckHosted(name), name)
	}
}

func TestOurProgramIsKnownByItsArguments(t *testing.T) {
	for want, containers := range map[string][]corev1.Container{
		"run":      {{Args: []string{"run", "--klusterlet=x"}}},
		"operator": {{Image: "registry.example/mirror:1", Args: []string{"operator"}}},
		"work":     {{Command: []string{"sidecar"}}, {Args: []string{"work"}}},
	} {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = containers
		require.Equal(t, want, RunsOurs(d))
	}
	for name, containers := range map[string][]corev1.Container{
		"the path of another program": {{Args: []string{"/registration-operator", "klusterlet"}}},
		"a command":                   {{Command: []string{"other"}, Args: []string{"operator"}}},
		"another argument":            {{Args: []string{"operators"}}},
		"no argument":                 {{Image: "ocm-agent"}},
	} {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = containers
		require.Empty(t, RunsOurs(d), name)
	}
}
