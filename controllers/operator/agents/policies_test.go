// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// withPolicies switches the gate on; the spec may name further settings.
func withPolicies(s *State) {
	s.Klusterlet.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
		FeatureGates: []operatorv1.FeatureGate{{Feature: "NetworkPolicies", Mode: operatorv1.FeatureGateModeTypeEnable}},
	}
}

// policiesOf returns the names of the policies that a plan applies and removes.
func policiesOf(p Plan) (applied, removed []string) {
	for _, stage := range append(p.Stages, Stage{Writes: p.Writes}) {
		for _, w := range stage.Writes {
			at := reconcile.TargetOf(w)
			if at.Resource != policiesResource {
				continue
			}
			if _, ok := w.(reconcile.Remove); ok {
				removed = append(removed, at.Name)
			} else {
				applied = append(applied, at.Name)
			}
		}
	}
	return applied, removed
}

func kubeconfigAt(server, proxy string) map[string][]byte {
	return map[string][]byte{"kubeconfig": []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"h","cluster":{"server":"` + server + `","proxy-url":"` + proxy + `"}}],
		"users":[{"name":"u","user":{"token":"t"}}],"contexts":[{"name":"c","context":{"cluster":"h","user":"u"}}]}`)}
}

func TestPoliciesComeAndGoWithTheirGate(t *testing.T) {
	have := func(owner string) func(*State) {
		return func(s *State) { s.Policies["default-deny-all"] = Labelled{Owner: owner, UID: "p"} }
	}
	several := func(s *State) {
		withPolicies(s)
		c := s.Klusterlet.Spec.RegistrationConfiguration
		c.FeatureGates = append(c.FeatureGates, operatorv1.FeatureGate{Feature: "MultipleHubs", Mode: operatorv1.FeatureGateModeTypeEnable})
		c.BootstrapKubeConfigs = operatorv1.BootstrapKubeConfigs{
			Type: operatorv1.BootstrapKubeConfigTypeLocalSecrets, LocalSecretsConfig: &operatorv1.LocalSecretsConfig{
				KubeConfigSecrets: []operatorv1.KubeConfigSecret{{Name: "a"}, {Name: "b"}},
			},
		}
	}
	for name, tc := range map[string]struct {
		change           []func(*State)
		applied, removed []string
	}{
		"off":                    {},
		"on":                     {[]func(*State){withPolicies}, shared.PolicyNames(), nil},
		"off again":              {[]func(*State){have("k")}, nil, []string{"default-deny-all"}},
		"off, that of another":   {[]func(*State){have("other")}, nil, nil},
		"several hubs":           {[]func(*State){several, have("k")}, shared.PolicyNames(), nil},
		"in the compact layout":  {[]func(*State){withPolicies, func(s *State) { s.Compact = true }}, shared.PolicyNames(), nil},
		"with the same settings": {[]func(*State){withPolicies, have("k")}, shared.PolicyNames(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(state(tc.change...))
			applied, removed := policiesOf(p)
			require.Equal(t, tc.applied, applied)
			require.Equal(t, tc.removed, removed)
			c := apimeta.FindStatusCondition(p.Object.(*operatorv1.Klusterlet).Status.Conditions, "SpecSupported")
			require.Equal(t, "AllFieldsSupported", c.Reason, c.Message)
		})
	}
}

func TestPoliciesKnowWhereTheAPIServersAre(t *testing.T) {
	s := state(withPolicies, func(s *State) {
		s.APIServer = []int64{35001}
		s.BootstrapSecret, s.HubSecret = kubeconfigAt("https://hub:7443", "http://proxy:3128"), map[string][]byte{"kubeconfig": []byte("broken")}
		s.Secrets[namespace] = map[string]Secret{operatorv1.SecretExternalManagedKubeconfig: {Data: kubeconfigAt("https://managed:8001", "")}}
	})
	u := applied(Decide(s))["NetworkPolicy "+namespace+"/allow-dns-and-api"]
	require.NotNil(t, u)
	egress, _, err := unstructured.NestedSlice(u.Object, "spec", "egress")
	require.NoError(t, err)
	var got []any
	for _, p := range egress[0].(map[string]any)["ports"].([]any) {
		got = append(got, p.(map[string]any)["port"])
	}
	require.Equal(t, []any{int64(53), int64(53), int64(5353), int64(5353), int64(443), int64(3128), int64(6443), int64(7443), int64(35001)}, got)
	s.Klusterlet.Spec.DeployOption.Mode = operatorv1.InstallModeHosted
	s.Secrets["k"] = s.Secrets[namespace]
	require.Contains(t, s.servers(settings.Asked{}), int64(8001), "a hosted agent calls its managed cluster, too")
	several := settings.Asked{}
	several.Settings.Hubs = []string{"a", "b"}
	require.Empty(t, s.servers(several), "the agent alone reads where its hubs are")
}

func TestAnAgentOfAnOperatorHasNoRightToItsPolicies(t *testing.T) {
	for _, apart := range []bool{true, false} {
		objects, err := rights(state().Klusterlet, namespace, apart)
		require.NoError(t, err)
		for _, u := range objects {
			rules, _, _ := unstructured.NestedSlice(u.Object, "rules")
			for _, rule := range rules {
				require.NotContains(t, rule.(map[string]any)["resources"], "networkpolicies", u.GetName())
			}
		}
	}
}
