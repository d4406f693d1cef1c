// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

func TestBadManifestsAreNamedOneByOne(t *testing.T) {
	s := newScene(t)
	s.start()
	deep := strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300)
	bad := []struct{ manifest, want string }{
		{
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"NS"}}`,
			"metadata.name: must be set; give the object a name",
		},
		{
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"x-","namespace":"NS"}}`,
			"metadata.generateName: must not be set; set metadata.name, so that the object can be found again",
		},
		{
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"nowhere"}}`,
			"metadata.namespace: must be set, because ConfigMap is namespaced; name the namespace",
		},
		{
			`{"apiVersion":"v1","kind":"Nonsense","metadata":{"name":"x","namespace":"NS"}}`,
			`the server doesn't have a resource type "Nonsense" in v1`,
		},
		{
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"deep","namespace":"NS"},"x":` + deep + `}`,
			"the manifest nests deeper than 200 levels; flatten it",
		},
		{
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"Not_A_Name","namespace":"NS"}}`,
			`metadata.name: Invalid value: "Not_A_Name"`,
		},
		{
			`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"NS"},"data":{"a":"sesame!"}}`,
			"details are withheld, they may hold content of the Secret",
		},
	}
	var manifests, wants []string
	for _, b := range bad {
		manifests, wants = append(manifests, b.manifest), append(wants, b.want)
	}
	s.create("web", append(manifests, configMap("good", "a", "1")))
	work := s.settled("web", "Applied", metav1.ConditionFalse)
	for i, want := range wants {
		c := condition(work, i, "Applied")
		require.Equal(t, metav1.ConditionFalse, c.Status, manifests[i])
		require.Contains(t, c.Message, want)
		require.NotContains(t, c.Message, "sesame")
		require.LessOrEqual(t, len(c.Message), 2048)
	}
	require.Equal(t, metav1.ConditionTrue, condition(work, len(wants), "Applied").Status)
	require.Equal(t, "1", s.data("good", "a"))
	s.eventually(func() bool { return len(s.events("AppliedManifestWorkFailed")) == 1 }, "there is no Event of the failure")
	event := s.events("AppliedManifestWorkFailed")[0].Object
	require.Equal(t, "Warning", event["type"])
	require.NotContains(t, fmt.Sprint(event), "sesame")

	s.update("web", s.manifests(configMap("good", "a", "2")))
	s.ready("web")
	s.eventually(func() bool { return len(s.events("AppliedManifestWorkComplete")) == 1 }, "there is no Event of the recovery")
	require.Len(t, s.events("AppliedManifestWorkFailed"), 1, "a failure is reported once")
}

func TestAMalformedEditDeletesNothing(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")})
	s.ready("web")
	uid := s.get(configMaps, "one").GetUID()
	s.update(
		"web",
		s.manifests(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","generateName":"one-","namespace":"NS"}}`, configMap("three", "a", "1")),
	)
	s.settled("web", "Applied", metav1.ConditionFalse)
	s.eventually(func() bool { return s.data("two", "a") == "-" && s.data("three", "a") == "1" }, "the rest of the edit is not carried out")
	require.Equal(t, uid, s.get(configMaps, "one").GetUID(), "an object whose manifest has a fault is still declared")
	s.eventually(func() bool { return len(s.applied("web").Status.AppliedResources) == 2 }, "the record differs from what is declared")
}

func TestAWorkOfFiveHundredKiBIsApplied(t *testing.T) {
	s := newScene(t)
	s.start()
	var manifests []string
	for i := range 5 {
		manifests = append(manifests, configMap(fmt.Sprintf("big-%d", i), "a", strings.Repeat("x", 100<<10)))
	}
	for i := range 100 {
		manifests = append(manifests, configMap(fmt.Sprintf("small-%d", i), "a", "1"))
	}
	s.create("web", manifests)
	s.told("web")
	s.ready("web")
	s.eventually(func() bool { return len(s.applied("web").Status.AppliedResources) == 105 }, "its objects are not recorded")
	s.remove("web")
	s.gone("web")
}

func TestAPoisonousWorkHoldsUpNoOther(t *testing.T) {
	s := newScene(t)
	s.start()
	for i := range 8 {
		s.create(fmt.Sprintf("poison-%d", i), []string{`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j","namespace":"NS"},"spec":{"template":{}}}`})
	}
	for i := range 8 {
		s.settled(fmt.Sprintf("poison-%d", i), "Applied", metav1.ConditionFalse)
	}
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
}

func TestWhereAWatchIsForbiddenDriftIsFoundByALook(t *testing.T) {
	s := newScene(t)
	s.aggregate("narrow-for-works", `[{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["get","create","patch","delete"]}]`)
	s.config.Spoke = s.sent.On(s.narrow(), "spoke")
	s.start()
	s.create("web", []string{`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l","namespace":"NS"},"spec":{"holderIdentity":"ours"}}`})
	s.ready("web")
	s.eventually(func() bool { return len(s.events("WatchForbidden")) > 0 }, "it is not reported")
	leases := schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	s.patch(leases, "l", `{"spec":{"holderIdentity":"theirs"}}`)
	s.clock.forward(drift.PollEvery)
	s.update("web", func(w *workv1.ManifestWork) { w.Labels = map[string]string{"look": "now"} }) // sooner than the ticker of one minute
	s.eventually(func() bool {
		holder, _, _ := unstructured.NestedString(s.get(leases, "l").Object, "spec", "holderIdentity")
		return holder == "ours"
	}, "the change is not found")
	s.soonManifestSays(
		"web", 0, "Applied",
		"True AppliedManifestComplete Apply manifest complete: the agent may not list and watch leases.coordination.k8s.io, "+
			"so that a change of the object is found within a minute only",
	)
	s.remove("web")
	s.gone("web")
}

// narrow returns an identity with the rights of join --agent-rights narrow and what roles
// with the aggregation label add: it may not list or watch leases.
func (s *scene) narrow() *rest.Config {
	cfg := harness.Shared(s.t, "spoke").As(s.t, s.namespace, "narrow")
	user := "system:serviceaccount:" + s.namespace + ":narrow"
	for _, role := range []string{"kubectl-ocm:klusterlet-work:agent", "narrow-for-works"} {
		apply(s.t, s.spoke, clusterRoleBindings, "", fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1",
			"kind":"ClusterRoleBinding","metadata":{"name":"%s-%s"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},"subjects":[{"kind":"ServiceAccount","namespace":%q,"name":"narrow"}]}`,
			s.namespace, replace(role, ":", "-"), role, s.namespace))
	}
	awaitRights(
		s.t, s.spoke, user, "",
		`[{"apiGroups":["work.open-cluster-management.io"],"resources":["appliedmanifestworks"],"verbs":["list","watch","create","patch"]}]`,
	)
	return cfg
}

func TestTwoAgentsAtOnceDoNotFight(t *testing.T) {
	s := newScene(t)
	s.start()
	s.start()
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")})
	s.ready("web")
	require.NoError(t, s.spoke.Resource(configMaps).Namespace(s.namespace).Delete(context.Background(), "one", metav1.DeleteOptions{}))
	s.eventually(func() bool { return s.data("one", "a") == "1" }, "drift is not repaired")
	s.update("web", s.manifests(configMap("two", "a", "2")))
	s.ready("web")
	s.eventually(func() bool { return s.data("one", "a") == "-" }, "it is not pruned")
	s.rests()
	s.remove("web")
	s.gone("web")
}

func TestAnAPIServerThatFailsNowAndThenIsNoHindrance(t *testing.T) {
	s := newScene(t)
	var n atomic.Int64
	s.sent.Fail(func(_ string, r *http.Request) error {
		if r.Method == http.MethodGet {
			return nil
		}
		if n.Add(1)%2 == 1 {
			return faults.ErrCut
		}
		return nil
	})
	s.start()
	for i := range 3 {
		s.create(fmt.Sprintf("web-%d", i), []string{configMap(fmt.Sprintf("one-%d", i), "a", "1"), configMap(fmt.Sprintf("two-%d", i), "a", "1")})
	}
	for i := range 3 {
		s.ready(fmt.Sprintf("web-%d", i))
		s.remove(fmt.Sprintf("web-%d", i))
		s.gone(fmt.Sprintf("web-%d", i))
	}
	require.Empty(t, withoutDefaults(s.list(s.spoke, configMaps, s.namespace)))
}

func withoutDefaults(list []unstructured.Unstructured) []string {
	var out []string
	for _, u := range list {
		if u.GetName() != "kube-root-ca.crt" {
			out = append(out, u.GetName())
		}
	}
	return out
}

func TestAWorkThatIsAppliedElsewhereToo(t *testing.T) {
	s := newScene(t)
	s.start()
	nested := `{"apiVersion":"work.open-cluster-management.io/v1","kind":"AppliedManifestWork",
		"metadata":{"name":"nested-` + s.namespace + `"},"spec":{"hubHash":"x","manifestWorkName":"y"}}`
	s.create("web", []string{nested, configMap("one", "a", "1")})
	s.ready("web")
	s.rests()
	live := s.getIn(applieds, "", "nested-"+s.namespace)
	require.NotNil(t, live)
	require.Equal(t, int64(1), live.GetGeneration(), "it is taken for one of this agent")
	require.Empty(t, live.GetFinalizers(), "it is taken for one of this agent")
	s.remove("web")
	s.gone("web")
}
