// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// addOnAgent is the agent of add-on hello on a cluster.
func addOnAgent(cluster string) authenticationv1.UserInfo {
	group := "system:open-cluster-management:cluster:" + cluster + ":addon:hello"
	return authenticationv1.UserInfo{
		Username: group + ":agent:hello", Groups: []string{group, "system:open-cluster-management:addon:hello"},
	}
}

func said(kinds ...string) (out []metav1.Condition) {
	for _, kind := range kinds {
		out = append(out, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "R"})
	}
	return out
}

// many returns n conditions.
func many(n int) []metav1.Condition {
	var kinds []string
	for i := range n {
		kinds = append(kinds, "T"+strings.Repeat("x", i))
	}
	return said(kinds...)
}

func helloOn() *addonv1alpha1.ManagedClusterAddOn {
	return &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello"},
		Status: addonv1alpha1.ManagedClusterAddOnStatus{
			Conditions: said("RegistrationApplied", "Available"), Namespace: "ns", KubeClientDriver: addonv1alpha1.DriverTypeCSR,
			Registrations: []addonv1alpha1.RegistrationConfig{
				{
					SignerName: addonv1alpha1.KubeAPIServerSigner,
					Subject:    addonv1alpha1.Subject{User: "system:open-cluster-management:cluster:c1:addon:hello:agent:hello"},
				},
				{SignerName: "example.com/own", Subject: addonv1alpha1.Subject{User: "me"}},
			},
			ConfigReferences: []addonv1alpha1.ConfigReference{
				{ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "ns", Name: "own"}},
			},
		},
	}
}

func TestWhatAnAgentMaySayOfAnAddOn(t *testing.T) {
	foreign := addonv1alpha1.ConfigReference{
		DesiredConfig: &addonv1alpha1.ConfigSpecHash{
			ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "tenant-b", Name: "private"}, SpecHash: "made-up",
		},
	}
	subject := func(user string, groups ...string) func(*addonv1alpha1.ManagedClusterAddOnStatus) {
		return func(s *addonv1alpha1.ManagedClusterAddOnStatus) {
			s.Registrations[0].Subject = addonv1alpha1.Subject{User: user, Groups: groups}
		}
	}
	const no, token = "which the hub owns", "system:serviceaccount:c1:hello-agent"
	for name, tc := range map[string]struct {
		change func(*addonv1alpha1.ManagedClusterAddOnStatus)
		// refused is the error for the agent of the cluster, addOn that for the agent of the
		// add-on.
		refused, addOn string
	}{
		"that it works": {
			func(s *addonv1alpha1.ManagedClusterAddOnStatus) {
				s.Conditions[1].Status, s.Conditions = metav1.ConditionFalse, append(
					s.Conditions, said("Degraded", "ClusterCertificateRotated", "Own")...,
				)
			},
			"",
			"",
		},
		"another configuration": {func(s *addonv1alpha1.ManagedClusterAddOnStatus) {
			s.ConfigReferences = append(s.ConfigReferences, foreign)
		}, no, no},
		"no configuration": {func(s *addonv1alpha1.ManagedClusterAddOnStatus) { s.ConfigReferences = nil }, no, no},
		"a kind": {func(s *addonv1alpha1.ManagedClusterAddOnStatus) {
			s.SupportedConfigs = []addonv1alpha1.ConfigGroupResource{{Resource: "configmaps"}}
		}, no, no},
		"a namespace": {func(s *addonv1alpha1.ManagedClusterAddOnStatus) { s.Namespace = "kube-system" }, no, no},
		"a mode": {func(s *addonv1alpha1.ManagedClusterAddOnStatus) {
			s.HealthCheck.Mode = addonv1alpha1.HealthCheckModeCustomized
		}, no, no},
		"a condition of the hub": {
			func(s *addonv1alpha1.ManagedClusterAddOnStatus) { s.Conditions[0].Status = metav1.ConditionFalse },
			no,
			no,
		},
		"that it is rolled out": {func(s *addonv1alpha1.ManagedClusterAddOnStatus) {
			s.Conditions = append(s.Conditions, said("Progressing")...)
		}, no, no},
		"no condition of the hub": {
			func(s *addonv1alpha1.ManagedClusterAddOnStatus) { s.Conditions = s.Conditions[1:] },
			no,
			no,
		},
		"conditions without end": {
			func(s *addonv1alpha1.ManagedClusterAddOnStatus) { s.Conditions = append(many(65), s.Conditions...) },
			"at most 64 are allowed",
			"at most 64 are allowed",
		},
		"a driver": {
			func(s *addonv1alpha1.ManagedClusterAddOnStatus) { s.KubeClientDriver = addonv1alpha1.DriverTypeToken },
			"",
			"kubeClientDriver",
		},
		"its account": {subject(token), "", no},
		"nobody":      {subject(""), "", no},
		"a user of the add-on": {
			subject(
				"system:open-cluster-management:cluster:c1:addon:hello:agent:other", "system:open-cluster-management:addon:hello",
			),
			"",
			no,
		},
		"an administrator":      {subject("admin", "system:masters"), no, no},
		"the user with a group": {subject(token, "system:masters"), no, no},
		"another cluster's":     {subject("system:open-cluster-management:cluster:c2:addon:hello:agent:hello"), no, no},
		"another cluster's, hidden": {
			subject("system:open-cluster-management:cluster:c1:addon:hello:agent:x:cluster:c2"),
			no,
			no,
		},
		"another signer": {
			func(s *addonv1alpha1.ManagedClusterAddOnStatus) { s.Registrations[1].SignerName = "example.com/other" },
			no,
			no,
		},
		"who another signer is for": {
			func(s *addonv1alpha1.ManagedClusterAddOnStatus) { s.Registrations[1].Subject.User = "you" },
			no,
			no,
		},
		"one registration less": {
			func(s *addonv1alpha1.ManagedClusterAddOnStatus) { s.Registrations = s.Registrations[:1] },
			no,
			no,
		},
		"a megabyte": {
			func(s *addonv1alpha1.ManagedClusterAddOnStatus) { s.Conditions[1].Message = strings.Repeat("x", 1<<20) },
			"let the status grow",
			"let the status grow",
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := helloOn()
			tc.change(&now.Status)
			h := server(&stated{}, all)
			verdict := func(who authenticationv1.UserInfo, message string) {
				t.Helper()
				code := int32(403)
				if message == "" {
					code = 0
				}
				check(t, send(t, h, webhook.PathAddOnStatus, helloOn(), now, who), code, message)
			}
			verdict(agentOf("c1"), tc.refused)
			verdict(addOnAgent("c1"), tc.addOn)
			verdict(agentOf("c2"), "another cluster's object")
			verdict(person, "")
			verdict(hubItself, "")
		})
	}
}

func TestWhatAnAgentMaySayOfItsCluster(t *testing.T) {
	cluster := func() *clusterv1.ManagedCluster {
		return mc(func(o *clusterv1.ManagedCluster) {
			o.Status.Conditions = said(clusterv1.ConditionHubAccepted, clusterv1.ConditionAvailable)
			o.Status.ManagedNamespaces = []clusterv1.ClusterSetManagedNamespace{
				{ClusterSet: "s1", ManagedNamespaceConfig: clusterv1.ManagedNamespaceConfig{Name: "a"}},
			}
		})
	}
	for name, tc := range map[string]struct {
		change  func(*clusterv1.ManagedCluster)
		refused string
	}{
		"what only it knows": {func(o *clusterv1.ManagedCluster) {
			o.Status.Conditions = append(o.Status.Conditions, said(clusterv1.ConditionJoined, "Own")...)
			o.Status.Conditions[1].Status = metav1.ConditionFalse
			o.Status.Version.Kubernetes, o.Status.ClusterClaims = "v1", []clusterv1.ManagedClusterClaim{{Name: "a", Value: "b"}}
			o.Status.ManagedNamespaces[0].Conditions = said(clusterv1.ConditionNamespaceAvailable)
		}, ""},
		"that it is accepted": {
			func(o *clusterv1.ManagedCluster) { o.Status.Conditions[0].Message = "by me" },
			clusterv1.ConditionHubAccepted,
		},
		"that nothing is wrong": {func(o *clusterv1.ManagedCluster) {
			o.Status.Conditions = append(o.Status.Conditions, said(clusterv1.ConditionDuplicateClusterName)...)
		}, clusterv1.ConditionDuplicateClusterName},
		"a namespace": {
			func(o *clusterv1.ManagedCluster) { o.Status.ManagedNamespaces[0].Name = "kube-system" },
			"status.managedNamespaces",
		},
		"conditions without end": {
			func(o *clusterv1.ManagedCluster) { o.Status.Conditions = append(o.Status.Conditions, many(63)...) },
			"at most 64 are allowed",
		},
		"claims without end": {
			func(o *clusterv1.ManagedCluster) { o.Status.ClusterClaims = make([]clusterv1.ManagedClusterClaim, 513) },
			"at most 512 are allowed",
		},
		"a megabyte": {
			func(o *clusterv1.ManagedCluster) { o.Status.Version.Kubernetes = strings.Repeat("x", 1<<20) },
			"let the status grow",
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := cluster()
			tc.change(now)
			code := int32(403)
			if tc.refused == "" {
				code = 0
			}
			h := server(&stated{}, all)
			check(t, send(t, h, webhook.PathClusterStatus, cluster(), now, agentOf("c1")), code, tc.refused)
			check(t, send(t, h, webhook.PathClusterStatus, cluster(), now, agentOf("c2")), 403, "another cluster's object")
			check(t, send(t, h, webhook.PathClusterStatus, cluster(), now, hubItself), 0, "")
			check(t, send(t, h, webhook.PathClusterStatus, now, now, agentOf("c1")), 0, "what is there may stay")
		})
	}
}

func TestWhatAnAgentMaySayOfItsWorks(t *testing.T) {
	const manifest = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a"}}`
	for name, tc := range map[string]struct {
		change  func(*workv1.ManifestWorkStatus)
		refused string
	}{
		"all of it": {func(s *workv1.ManifestWorkStatus) {
			s.Conditions = said(workv1.ConditionApplied, "Own")
			s.ResourceStatus.Manifests = []workv1.ManifestCondition{{Conditions: said(workv1.ConditionApplied)}}
		}, ""},
		"of more than it has": {
			func(s *workv1.ManifestWorkStatus) { s.ResourceStatus.Manifests = make([]workv1.ManifestCondition, 2) },
			"at most 1 are allowed",
		},
		"conditions without end": {func(s *workv1.ManifestWorkStatus) { s.Conditions = many(65) }, "at most 64 are allowed"},
		"of a manifest": {func(s *workv1.ManifestWorkStatus) {
			s.ResourceStatus.Manifests = []workv1.ManifestCondition{{Conditions: many(65)}}
		}, "at most 64 are allowed"},
		"megabytes": {
			func(s *workv1.ManifestWorkStatus) { s.Conditions = said(strings.Repeat("x", 2<<20)) },
			"let the status grow",
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := work(nil, manifest)
			tc.change(&now.Status)
			code := int32(403)
			if tc.refused == "" {
				code = 0
			}
			h := server(&stated{}, all)
			check(t, send(t, h, webhook.PathWorkStatus, work(nil, manifest), now, agentOf("c1")), code, tc.refused)
			check(
				t, send(t, h, webhook.PathWorkStatus, work(nil, manifest), now, agentOf("c2")), 403, "another cluster's object",
			)
			check(t, send(t, h, webhook.PathWorkStatus, work(nil, manifest), now, hubItself), 0, "")
		})
	}
}

func TestWhoWritesATemplateHasTheRightsThatItGives(t *testing.T) {
	bind := func(permission string) string {
		return `{"type":"KubeClient","kubeClient":{"hubPermissions":[` + permission + `]}}`
	}
	current := bind(`{"type":"CurrentCluster","currentCluster":{"clusterRoleName":"cluster-manager"}}`)
	single := bind(
		`{"type":"SingleNamespace","singleNamespace":{"namespace":"ns","roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"}}}`,
	)
	const signed = `{"type":"CustomSigner","customSigner":{"signerName":"example.com/s","signingCA":{"name":"ca"}}}`
	for name, tc := range map[string]struct {
		registration string
		rights       []string
		refused      string
	}{
		"none":                    {`{"type":"KubeClient"}`, nil, ""},
		"a role for all clusters": {current, []string{"bind clusterroles/ cluster-manager"}, ""},
		"that the author may not bind": {
			current,
			[]string{"bind clusterroles/ other", "bind roles/ cluster-manager"},
			`user "ann" cannot have the hub bind ClusterRole cluster-manager in the namespace of every cluster; ` +
				"the template must be written by someone who may, or the right granted with: " +
				"kubectl create clusterrole addon-bind-clusterroles-cluster-manager --verb=bind " +
				"--resource=clusterroles.rbac.authorization.k8s.io --resource-name=cluster-manager && " +
				"kubectl create clusterrolebinding addon-bind-clusterroles-cluster-manager --clusterrole=addon-bind-clusterroles-cluster-manager --user=ann",
		},
		"a role of one namespace":      {single, []string{"bind roles/ r"}, ""},
		"of which the author has none": {single, nil, "kubectl -n ns create role addon-bind-roles-r --verb=bind"},
		"a signer": {
			signed,
			[]string{"approve signers/ example.com/s", "sign signers/ example.com/s", "get secrets/ ca"},
			"",
		},
		"one to approve only": {
			signed,
			[]string{"approve signers/ example.com/s", "get secrets/ ca"},
			"sign certificates of signer example.com/s",
		},
		"one to sign only": {
			signed,
			[]string{"sign signers/ example.com/s", "get secrets/ ca"},
			"approve certificates of signer example.com/s",
		},
		"an authority of others": {
			signed,
			[]string{"approve signers/ example.com/s", "sign signers/ example.com/s"},
			"sign with Secret open-cluster-management-hub/ca",
		},
	} {
		t.Run(name, func(t *testing.T) {
			code := int32(403)
			if tc.refused == "" {
				code = 0
			}
			now := addOnTemplate(t, tc.registration)
			h := server(&stated{rights: tc.rights}, all)
			check(t, send(t, h, webhook.PathValidateTemplate, nil, now, person), code, tc.refused)
			check(
				t, send(t, h, webhook.PathValidateTemplate, addOnTemplate(t, `{"type":"KubeClient"}`), now, person), code,
				tc.refused,
			)
			// New manifests use the rights that the template already has.
			changed := now.DeepCopy()
			changed.Spec.AgentSpec.Workload.Manifests = []workv1.Manifest{{}}
			changed.Spec.AgentSpec.Workload.Manifests[0].Raw = []byte(`{}`)
			check(t, send(t, h, webhook.PathValidateTemplate, now, changed, person), code, tc.refused)
			relabelled := now.DeepCopy()
			relabelled.Labels = map[string]string{"a": "b"}
			check(t, send(t, h, webhook.PathValidateTemplate, now, relabelled, person), 0, "")
		})
	}
}

func addOnTemplate(t *testing.T, registration string) *addonv1alpha1.AddOnTemplate {
	t.Helper()
	out := &addonv1alpha1.AddOnTemplate{ObjectMeta: metav1.ObjectMeta{Name: "t"}}
	require.NoError(
		t, json.Unmarshal([]byte(`{"addonName":"t","registration":[`+registration+`],"agentSpec":{}}`), &out.Spec),
	)
	return out
}
