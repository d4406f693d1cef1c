// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const (
	// applying are the verbs needed to apply, owning those for objects that are deleted
	// with the work.
	applying = `["create","update","patch","get"]`
	owning   = `["create","update","patch","get","delete"]`
)

var roles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}

// robot makes a ServiceAccount without any rights the executor of a work.
func robot(s *scene) change {
	return func(w *workv1.ManifestWork) {
		w.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
			Type:           workv1.ExecutorSubjectTypeServiceAccount,
			ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: s.namespace, Name: "robot"},
		}}
	}
}

// grant gives the robot rights in its namespace, the rules of one role in JSON, and waits
// until they take effect.
func grant(s *scene, rules string) {
	s.t.Helper()
	apply(
		s.t, s.spoke, roles, s.namespace,
		fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"robots"},"rules":%s}`, rules),
	)
	apply(s.t, s.spoke, roleBindings, s.namespace, fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"robots"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"robots"},
		"subjects":[{"kind":"ServiceAccount","name":"robot","namespace":%q}]}`, s.namespace))
	awaitRights(s.t, s.spoke, s.robotUser(), s.namespace, rules)
}

// robotUser returns the user name of the robot.
func (s *scene) robotUser() string { return "system:serviceaccount:" + s.namespace + ":robot" }

// revoke removes the rights of grant.
func revoke(s *scene) {
	s.t.Helper()
	require.NoError(s.t, s.spoke.Resource(roleBindings).Namespace(s.namespace).Delete(context.Background(), "robots", metav1.DeleteOptions{}))
}

// on returns a rule for all ConfigMaps, or for those with these names.
func on(verbs string, names ...string) string {
	only := ""
	if len(names) > 0 {
		only = `,"resourceNames":["` + strings.Join(names, `","`) + `"]`
	}
	return `[{"apiGroups":[""],"resources":["configmaps"],"verbs":` + verbs + only + `}]`
}

func policy(p workv1.DeletePropagationPolicyType, orphaned ...string) change {
	return func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: p}
		for _, name := range orphaned {
			if w.Spec.DeleteOption.SelectivelyOrphans == nil {
				w.Spec.DeleteOption.SelectivelyOrphans = &workv1.SelectivelyOrphans{}
			}
			w.Spec.DeleteOption.SelectivelyOrphans.OrphaningRules = append(w.Spec.DeleteOption.SelectivelyOrphans.OrphaningRules,
				workv1.OrphaningRule{Resource: "configmaps", Namespace: w.Spec.Executor.Subject.ServiceAccount.Namespace, Name: name})
		}
	}
}

// verdicts returns the statuses of Applied of the manifests, in their order.
func verdicts(w *workv1.ManifestWork) string {
	var out []string
	for i := range w.Status.ResourceStatus.Manifests {
		out = append(out, string(condition(w, i, workv1.ConditionApplied).Status))
	}
	return strings.Join(out, " ")
}

func TestAnExecutorAppliesWhatItMay(t *testing.T) {
	two := []string{configMap("one", "a", "1"), configMap("two", "a", "1")}
	for name, tc := range map[string]struct {
		rules      string
		work       metav1.ConditionStatus
		want, data string
	}{
		"no right":   {`[]`, metav1.ConditionFalse, "False False", "--"},
		"all rights": {on(owning), metav1.ConditionTrue, "True True", "11"},
		"the rights on one": {
			`[{"apiGroups":[""],"resources":["configmaps"],"verbs":["update","patch","get","delete"],"resourceNames":["one"]},
				{"apiGroups":[""],"resources":["configmaps"],"verbs":["create"]}]`,
			metav1.ConditionFalse,
			"True False",
			"1-",
		},
		"all but one verb": {on(`["create","update","patch","delete"]`), metav1.ConditionFalse, "False False", "--"},
		"rights on something": {
			`[{"apiGroups":[""],"resources":["secrets"],"verbs":["*"]}]`,
			metav1.ConditionFalse,
			"False False",
			"--",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			grant(s, tc.rules)
			s.start()
			s.create("web", two, robot(s))
			s.settled("web", workv1.ConditionApplied, tc.work)
			work := s.settled("web", workv1.ConditionAvailable, tc.work)
			require.Equal(t, tc.want, verdicts(work))
			require.Equal(t, tc.data, s.data("one", "a")+s.data("two", "a"))
		})
	}
}

// The API server puts every ServiceAccount into these groups.
func TestAnExecutorHasTheRightsOfItsGroups(t *testing.T) {
	for _, group := range []string{"system:serviceaccounts:NS", "system:serviceaccounts", "system:authenticated"} {
		t.Run(group, func(t *testing.T) {
			s := newScene(t)
			grant(s, on(owning))
			apply(t, s.spoke, roleBindings, s.namespace, replace(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"robots"},
				"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"robots"},
				"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"GROUP"}]}`, "GROUP", replace(group, "NS", s.namespace)))
			s.start()
			s.create("web", []string{configMap("one", "a", "1")}, robot(s))
			s.ready("web")
			require.Equal(t, "1", s.data("one", "a"))
		})
	}
}

func TestADeniedExecutorIsToldWhatItLacks(t *testing.T) {
	s := newScene(t)
	grant(s, on(`["get","patch"]`))
	s.start()
	s.create("web", []string{configMap("one", "a", "sesame"), `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"NS"},"spec":{
		"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"web:1"}]}}}}`}, robot(
		s,
	))
	work := s.settled("web", workv1.ConditionApplied, metav1.ConditionFalse)
	first := condition(work, 0, workv1.ConditionApplied)
	require.Equal(t, workv1.ReasonAppliedManifestFailed, first.Reason)
	ns := s.namespace
	require.Equal(t, "Failed to apply manifest: not allowed to apply the resource  configmaps, "+ns+" one, will try again in 1m0s; "+
		"ServiceAccount "+ns+"/robot lacks create, update, delete; grant it on the managed cluster: "+
		"kubectl create role robot-configmaps --verb=create,update,delete --resource=configmaps -n "+ns+
		" && kubectl create rolebinding robot-configmaps --role=robot-configmaps --serviceaccount="+ns+":robot -n "+ns, first.Message)
	require.Contains(t, condition(work, 1, workv1.ConditionApplied).Message,
		"not allowed to apply the resource apps deployments, "+ns+" web, will try again in 1m0s; "+
			"ServiceAccount "+ns+"/robot lacks create, update, patch, get, delete; ")
	require.Contains(t, condition(work, 1, workv1.ConditionApplied).Message, "--resource=deployments.apps -n "+ns)
	require.NotContains(t, fmt.Sprint(work.Status), "sesame", "the content of the work is not disclosed")
}

func TestDeleteIsWantedOfWhatGoesWithTheWork(t *testing.T) {
	for name, tc := range map[string]struct {
		change change
		want   string
	}{
		"everything":   {policy(workv1.DeletePropagationPolicyTypeForeground), "False False"},
		"nothing":      {policy(workv1.DeletePropagationPolicyTypeOrphan), "True True"},
		"all but one":  {policy(workv1.DeletePropagationPolicyTypeSelectivelyOrphan, "one"), "True False"},
		"as it stands": {func(*workv1.ManifestWork) {}, "False False"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			grant(s, on(applying))
			s.start()
			s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")}, robot(s), tc.change)
			want := metav1.ConditionFalse
			if tc.want == "True True" {
				want = metav1.ConditionTrue
			}
			work := s.settled("web", workv1.ConditionApplied, want)
			require.Equal(t, tc.want, verdicts(work))
			for i, name := range []string{"one", "two"} {
				require.Equal(t, strings.Fields(tc.want)[i] == "True", s.get(configMaps, name) != nil, name)
			}
		})
	}
}

func TestRightsThatComeAndGoAreSeenAtOnce(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")}, robot(s), func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "*", Name: "*"},
			FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.FeedbackRuleTypeJSONPaths, JSONPaths: []workv1.JSONPath{{Name: "a", Path: ".data.a"}}}},
		}}
	})
	s.settled("web", workv1.ConditionApplied, metav1.ConditionFalse)
	require.Equal(t, "-", s.data("one", "a"))

	grant(s, on(owning))
	s.ready("web")
	require.Equal(t, "1", s.data("one", "a"))
	require.Len(t, s.work("web").Status.ResourceStatus.Manifests[0].StatusFeedback.Values, 1)

	revoke(s)
	work := s.settled("web", workv1.ConditionApplied, metav1.ConditionFalse)
	require.Contains(t, condition(work, 0, workv1.ConditionApplied).Message, "not allowed to apply the resource  configmaps")
	require.Equal(t, metav1.ConditionTrue, condition(work, 0, workv1.ConditionAvailable).Status)
	require.Equal(t, "1", s.data("one", "a"), "what is there stays")
	require.Empty(t, work.Status.ResourceStatus.Manifests[0].StatusFeedback.Values, "the status does not disclose what the executor may not read")
	require.Equal(t, metav1.ConditionFalse, condition(work, 0, workv1.ConditionStatusFeedbackSynced).Status)
	s.update("web", s.manifests(configMap("one", "a", "2")))
	s.settled("web", workv1.ConditionApplied, metav1.ConditionFalse)
	require.Equal(t, "1", s.data("one", "a"))

	grant(s, on(owning))
	s.ready("web")
	require.Equal(t, "2", s.data("one", "a"))
	// A work whose executor has lost its rights is cleaned up all the same.
	revoke(s)
	s.settled("web", workv1.ConditionApplied, metav1.ConditionFalse)
	s.remove("web")
	s.gone("web")
	require.Equal(t, "-", s.data("one", "a"))
}

func TestWritesAreMadeAsTheExecutor(t *testing.T) {
	s := newScene(t)
	grant(s, on(owning))
	var as identities
	s.sent.Fail(as.record)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")}, robot(s))
	s.ready("web")
	require.Contains(t, as.take(), "PATCH /api/v1/namespaces/"+s.namespace+"/configmaps/one system:serviceaccount:"+s.namespace+":robot")
	for _, entry := range s.get(configMaps, "one").GetManagedFields() {
		require.Equal(t, "work-agent", entry.Manager)
	}
	// Drift is also repaired as the executor, without another access review.
	s.untilRest(calmOfRights)
	as.take()
	s.patch(configMaps, "one", `{"data":{"a":"2"}}`)
	s.eventually(func() bool { return s.data("one", "a") == "1" }, "drift is not repaired")
	for _, r := range as.take() {
		require.NotContains(t, r, "subjectaccessreviews")
		require.False(t, strings.HasPrefix(r, "PATCH") && strings.Contains(r, "configmaps") && !strings.HasSuffix(r, ":robot"), r)
	}
}

// Checks in advance grant nothing: the API server decides.
func TestAnExecutorIsHeldByTheAPIServer(t *testing.T) {
	s := newScene(t)
	grant(s, on(owning))
	blocked := make(chan struct{})
	release := sync.OnceFunc(func() { close(blocked) })
	var holding atomic.Bool
	s.sent.Fail(func(_ string, r *http.Request) error {
		if holding.Load() && strings.HasSuffix(r.URL.Path, "/selfsubjectrulesreviews") {
			<-blocked
		}
		return nil
	})
	s.start()
	t.Cleanup(release)
	s.create("web", []string{configMap("one", "a", "1")}, robot(s))
	s.ready("web")
	holding.Store(true)
	revoke(s)
	s.eventually(func() bool {
		return !may(t, s.spoke, s.robotUser(), map[string]any{"verb": "patch", "namespace": s.namespace, "resource": "configmaps"})
	}, "the right is not taken away")
	s.patch(configMaps, "one", `{"data":{"a":"2"}}`)
	work := s.settled("web", workv1.ConditionApplied, metav1.ConditionFalse)
	require.Contains(
		t, condition(work, 0, workv1.ConditionApplied).Message,
		"not allowed to apply the resource  configmaps, "+s.namespace+" one, will try again in 1m0s; the API server refused ServiceAccount",
	)
	require.Equal(t, "2", s.data("one", "a"))
	release()
	s.eventually(func() bool {
		return strings.Contains(condition(s.work("web"), 0, workv1.ConditionApplied).Message, "lacks create, update, patch, get, delete")
	}, "what is missing is not reported")
	grant(s, on(owning))
	s.ready("web")
	require.Equal(t, "1", s.data("one", "a"))
}

// identities records which users an agent impersonates.
type identities struct {
	mu   sync.Mutex
	sent []string
}

func (i *identities) record(_ string, r *http.Request) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.sent = append(i.sent, r.Method+" "+r.URL.Path+" "+r.Header.Get("Impersonate-User"))
	return nil
}

func (i *identities) take() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := i.sent
	i.sent = nil
	return out
}

func TestWithExecutorsNothingIsSentAtRest(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("plain", []string{configMap("plain", "a", "1")})
	s.ready("plain")
	require.False(t, slices.ContainsFunc(s.sent.Take(), watchesRoles), "roles are watched without an executor")
	grant(s, on(owning))
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")}, robot(s))
	s.ready("web")
	s.eventually(func() bool { return slices.ContainsFunc(s.sent.Take(), watchesRoles) }, "roles are not watched")
	s.untilRest(calmOfRights)

	// The same rights in another form cost one read of the rules and no write.
	apply(
		t, s.spoke, roles, s.namespace,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"robots","labels":{"a":"b"}},"rules":`+on(owning)+`}`,
	)
	s.eventually(func() bool {
		return slices.ContainsFunc(s.sent.Take(), func(r string) bool { return strings.Contains(r, "selfsubjectrulesreviews") })
	}, "the rules are not compared")
	s.never(func() bool {
		return slices.ContainsFunc(s.sent.Take(), func(r string) bool {
			return strings.Contains(r, "subjectaccessreviews") || strings.Contains(r, "configmaps")
		})
	}, second, "rights that are the same are looked at")
	s.remove("web")
	s.gone("web")
}

func watchesRoles(r string) bool { return r == "spoke GET /apis/rbac.authorization.k8s.io/v1/roles" }

func TestAnExecutorCannotGrantWhatItDoesNotHave(t *testing.T) {
	role := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"wide","namespace":"NS"},
		"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}]}`
	binding := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"wide","namespace":"NS"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"wide"},"subjects":[{"kind":"ServiceAccount","name":"other","namespace":"NS"}]}`
	const rbac = `{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":`
	with := func(verbs string) string { return `[` + rbac + verbs + `}]` }
	more := strings.Replace(owning, `]`, `,"escalate","bind"]`, 1)
	for name, tc := range map[string]struct {
		rules    string
		existing bool
		want     string
	}{
		"new":                   {with(owning), false, "False False"},
		"existing":              {with(owning), true, "False False"},
		"new, with the verbs":   {with(more), false, "True True"},
		"there, with the verbs": {with(more), true, "True True"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			grant(s, tc.rules)
			// The role that the binding names has to exist for the check.
			apply(t, s.spoke, roles, s.namespace, strings.ReplaceAll(role, "NS", s.namespace))
			if tc.existing {
				apply(t, s.spoke, roleBindings, s.namespace, strings.ReplaceAll(binding, "NS", s.namespace))
			} else if tc.want == "True True" {
				require.NoError(t, s.spoke.Resource(roles).Namespace(s.namespace).Delete(context.Background(), "wide", metav1.DeleteOptions{}))
			}
			s.start()
			s.create("web", []string{role, binding}, robot(s))
			want := metav1.ConditionFalse
			if tc.want == "True True" {
				want = metav1.ConditionTrue
			}
			work := s.settled("web", workv1.ConditionApplied, want)
			require.Equal(t, tc.want, verdicts(work))
			if tc.want == "True True" {
				return
			}
			require.Contains(t, condition(
				work, 0, workv1.ConditionApplied,
			).Message, "Failed to apply manifest: not allowed to apply the resource rbac.authorization.k8s.io roles, "+
				s.namespace+" wide, error: permission escalation, will try again in 1m0s; ServiceAccount "+s.namespace+"/robot may grant only rights that it has itself")
			require.Contains(t, condition(work, 1, workv1.ConditionApplied).Message, "rolebindings, "+s.namespace+" wide, error: permission escalation, ")
			require.Empty(t, s.get(roles, "wide").GetOwnerReferences())
		})
	}
}

// A manifest without rules has nothing that a dry run could reject, and still changes
// what an existing role grants.
func TestAnExecutorCannotSpreadARoleThatIsThere(t *testing.T) {
	s := newScene(t)
	name := "spread-" + s.namespace
	t.Cleanup(func() {
		require.NoError(t, s.spoke.Resource(clusterRoles).Delete(context.Background(), name, metav1.DeleteOptions{}))
		require.NoError(t, s.spoke.Resource(clusterRoles).Delete(context.Background(), name+"-robot", metav1.DeleteOptions{}))
		require.NoError(t, s.spoke.Resource(clusterRoleBindings).Delete(context.Background(), name+"-robot", metav1.DeleteOptions{}))
	})
	apply(
		t, s.spoke, clusterRoles, "",
		fmt.Sprintf(
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":%q},
				"rules":[{"apiGroups":["example.com"],"resources":["*"],"verbs":["*"]}]}`,
			name,
		),
	)
	apply(t, s.spoke, clusterRoles, "", fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"%s-robot"},"rules":[
		{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"verbs":%s}]}`, name, owning))
	apply(t, s.spoke, clusterRoleBindings, "", fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1",
		"kind":"ClusterRoleBinding","metadata":{"name":"%[1]s-robot"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"%[1]s-robot"},
		"subjects":[{"kind":"ServiceAccount","name":"robot","namespace":%[2]q}]}`, name,
		s.namespace))
	awaitRights(t, s.spoke, s.robotUser(), "", `[{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"verbs":`+owning+`}]`)
	s.start()
	s.create(
		"web",
		[]string{
			fmt.Sprintf(
				`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":%q,"labels":{"example.com/aggregate-to-robots":"true"}}}`,
				name,
			),
		},
		robot(s),
	)
	work := s.settled("web", workv1.ConditionApplied, metav1.ConditionFalse)
	require.Contains(t, condition(work, 0, workv1.ConditionApplied).Message, "clusterroles,  "+name+", error: permission escalation, ")
	require.Empty(t, s.getIn(clusterRoles, "", name).GetLabels())
}

func TestAnExecutorThatIsNoneAppliesNothing(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")}, func(w *workv1.ManifestWork) {
		w.Spec.Executor = &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{Type: workv1.ExecutorSubjectTypeServiceAccount}}
	})
	work := s.settled("web", workv1.ConditionApplied, metav1.ConditionFalse)
	require.Equal(t, "Failed to apply manifest: the executor service account is nil", condition(work, 0, workv1.ConditionApplied).Message)
	require.Equal(t, "-", s.data("one", "a"))
	s.update("web", func(w *workv1.ManifestWork) { w.Spec.Executor = nil })
	s.ready("web")
}

// An executor that may only orphan cannot make the agent delete for it.
func TestAnExecutorWithoutDeleteHasNothingDeleted(t *testing.T) {
	s := newScene(t)
	grant(s, on(applying))
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1")}, robot(s), policy(workv1.DeletePropagationPolicyTypeOrphan))
	s.ready("web")
	stop()
	s.update("web", policy(workv1.DeletePropagationPolicyTypeForeground))
	s.remove("web")
	s.start()
	s.gone("web")
	require.Equal(t, "1", s.data("one", "a"))
}

// With narrow rights, the agent itself may not read, write or delete these objects, but
// the executor may.
func TestAnExecutorServesWhereTheAgentHasNoRights(t *testing.T) {
	s := newScene(t)
	s.config.Spoke = s.sent.On(s.narrow(), "spoke")
	grant(s, on(owning))
	s.start()
	// A work without an executor discloses nothing.
	s.create("plain", []string{configMap("plain", "a", "sesame"), replace(kindCases["ClusterRoleBinding"].manifest, "CLUSTER", "k-"+s.namespace)})
	plain := s.settled("plain", workv1.ConditionApplied, metav1.ConditionFalse)
	require.Equal(t, "False False", verdicts(plain))
	require.Contains(t, condition(plain, 1, workv1.ConditionApplied).Message, "forbidden")
	require.NotContains(t, fmt.Sprint(plain.Status), "sesame", "the content of the work is not disclosed")
	require.Nil(t, s.getIn(clusterRoleBindings, "", "k-"+s.namespace))
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")}, robot(s))
	s.ready("web")
	s.update("web", s.manifests(configMap("one", "a", "2")))
	s.ready("web")
	s.eventually(func() bool { return s.data("one", "a") == "2" && s.data("two", "a") == "-" }, "it is not carried out")
	s.remove("web")
	s.gone("web")
	require.Equal(t, "-", s.data("one", "a"))
}

// A change by others to what a record notes for a restarted agent is repaired, without
// any other event.
func TestANoteThatSomebodyChangesIsPutRight(t *testing.T) {
	s := newScene(t)
	grant(s, on(owning))
	s.start()
	s.create("web", []string{configMap("one", "a", "1")}, robot(s), func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "*", Name: "*"},
			ConditionRules:     []workv1.ConditionRule{{Condition: "Complete", Type: workv1.ConditionRuleTypeCEL, CELExpressions: []string{"true"}}},
		}}
	})
	s.settled("web", workv1.ConditionComplete, metav1.ConditionTrue)
	for _, key := range []string{workv1.AnnotationExecutor, workv1.AnnotationCompleteManifests} {
		s.eventually(func() bool { return s.applied("web").Annotations[key] != "" }, "nothing is noted as %s", key)
		noted := s.applied("web").Annotations[key]
		for _, value := range []string{`"somebody"`, "null"} {
			_, err := s.spoke.Resource(applieds).Patch(
				t.Context(), s.applied("web").Name, types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"`+key+`":`+value+`}}}`), metav1.PatchOptions{},
			)
			require.NoError(t, err)
			s.eventually(func() bool { return s.applied("web").Annotations[key] == noted }, "%s stays %s", key, value)
		}
	}
}

// The hub forgets a work, so that only the record names the executor with whose rights
// its objects can be removed.
func TestAnEvictedWorkGoesByTheRightsOfItsExecutor(t *testing.T) {
	s := newScene(t)
	s.config.Spoke, s.config.Grace = s.sent.On(s.narrow(), "spoke"), second
	grant(s, on(owning))
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.settled("web", workv1.ConditionApplied, metav1.ConditionFalse)
	require.Empty(t, s.applied("web").Annotations[workv1.AnnotationExecutor])
	s.update("web", robot(s))
	s.ready("web")
	s.eventually(func() bool {
		return s.applied("web").Annotations[workv1.AnnotationExecutor] == "system:serviceaccount:"+s.namespace+":robot"
	}, "its executor is not noted")
	stop()
	s.forget("web")
	s.start()
	s.eventually(func() bool { return s.applied("web") == nil }, "it is not evicted")
	require.Equal(t, "-", s.data("one", "a"))
}
