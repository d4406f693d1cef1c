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
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

func replace(s, old, with string) string { return strings.ReplaceAll(s, old, with) }

func orphan(rules ...workv1.OrphaningRule) change {
	return func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
		if rules != nil {
			w.Spec.DeleteOption.PropagationPolicy = workv1.DeletePropagationPolicyTypeSelectivelyOrphan
			w.Spec.DeleteOption.SelectivelyOrphans = &workv1.SelectivelyOrphans{OrphaningRules: rules}
		}
	}
}

func TestAnOrphanedObjectStaysWithoutOwner(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")}, orphan())
	s.ready("web")
	require.Empty(t, s.get(configMaps, "one").GetOwnerReferences())
	s.remove("web")
	s.gone("web")
	require.Equal(t, "1", s.data("one", "a"))
}

func TestManyOrphansAreListedTogether(t *testing.T) {
	const many = 12
	s := newScene(t)
	stop := s.start()
	for i := range many {
		s.create(fmt.Sprint("web", i), []string{configMap(fmt.Sprint("one", i), "a", "1")}, orphan())
	}
	for i := range many {
		s.ready(fmt.Sprint("web", i))
	}
	stop()
	s.sent.Take()
	s.start()
	for i := range many {
		name := fmt.Sprint("one", i)
		s.patch(configMaps, name, `{"data":{"a":"2"}}`)
		s.eventually(func() bool { return s.data(name, "a") == "1" }, "%s is not repaired", name)
	}
	lists := 0
	for _, r := range s.sent.Take() {
		if strings.HasSuffix(r, "/configmaps") {
			lists++
		}
	}
	require.LessOrEqual(t, lists, 6, "each list is of everything in the namespace")
}

func TestOnlyTheObjectsOfARuleAreOrphaned(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")},
		orphan(workv1.OrphaningRule{Resource: "configmaps", Namespace: s.namespace, Name: "one"}))
	s.ready("web")
	require.Empty(t, s.get(configMaps, "one").GetOwnerReferences())
	require.Len(t, s.get(configMaps, "two").GetOwnerReferences(), 1)
	s.remove("web")
	s.gone("web")
	require.Equal(t, "1", s.data("one", "a"))
	require.Equal(t, "-", s.data("two", "a"))
}

func TestAnOrphanedManifestMayLeaveTheWork(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")}, orphan())
	s.ready("web")
	s.update("web", s.manifests(configMap("two", "a", "1")))
	s.ready("web")
	s.eventually(func() bool { return len(s.applied("web").Status.AppliedResources) == 1 }, "what left the work is still recorded")
	require.Equal(t, "1", s.data("one", "a"))
}

func TestTheOwnerComesBackWithTheDeleteOption(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")}, orphan())
	s.ready("web")
	s.update("web", func(w *workv1.ManifestWork) { w.Spec.DeleteOption = nil })
	s.eventually(func() bool { return len(s.get(configMaps, "one").GetOwnerReferences()) == 1 }, "no owner")
	s.update("web", orphan())
	s.eventually(func() bool { return len(s.get(configMaps, "one").GetOwnerReferences()) == 0 }, "still owned")
	s.update("web", func(w *workv1.ManifestWork) { w.Spec.DeleteOption = nil })
	s.remove("web")
	s.gone("web")
	require.Equal(t, "-", s.data("one", "a"))
}

func TestTheDeleteOptionHoldsAsItStandsAtDeletion(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after change
		want          string
	}{
		"changed to orphan":  {func(*workv1.ManifestWork) {}, orphan(), "1"},
		"changed to deletes": {orphan(), func(w *workv1.ManifestWork) { w.Spec.DeleteOption = nil }, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			stop := s.start()
			s.create("web", []string{configMap("one", "a", "1")}, tc.before)
			s.ready("web")
			stop()
			s.update("web", tc.after)
			s.remove("web")
			s.start()
			s.gone("web")
			require.Equal(t, tc.want, s.data("one", "a"))
		})
	}
}

// The hub learns of an object without owner reference only when its identity is recorded: an
// agent that ends in between could never delete it.
func TestAnOrphanIsReportedWhenItsIdentityIsRecorded(t *testing.T) {
	s := newScene(t)
	var written atomic.Bool
	var refused atomic.Int32
	s.sent.Fail(func(side string, r *http.Request) error {
		switch {
		case side != "spoke" || r.Method == http.MethodGet:
		case strings.Contains(r.URL.Path, "/configmaps"):
			written.Store(true)
		case strings.Contains(r.URL.Path, "/appliedmanifestworks/") && written.Load():
			refused.Add(1)
			return faults.ErrCut
		}
		return nil
	})
	s.start()
	s.create("web", []string{configMap("one", "a", "1")}, orphan())
	s.eventually(func() bool { return refused.Load() > 2 }, "nothing is recorded after the object was written")
	require.Empty(t, s.work("web").Status.Conditions, "the hub was told of an object that is not recorded")
	require.Empty(t, s.applied("web").Status.AppliedResources)
	s.sent.Fail(nil)
	s.ready("web")
	require.NotEmpty(t, s.applied("web").Status.AppliedResources[0].UID)
}

// So it is with an object that was deleted and created again: what has another identity than the
// recorded one is somebody else's.
func TestAReplacementIsReportedWhenItsIdentityIsRecorded(t *testing.T) {
	s := newScene(t)
	s.start()
	secret := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"one","namespace":"NS"},"type":"Opaque"}`
	s.create("web", []string{secret})
	s.ready("web")
	recorded := func() bool { return s.applied("web").Status.AppliedResources[0].UID == s.get(secrets, "one").GetUID() }
	s.eventually(recorded, "it is not recorded")
	var replaced atomic.Bool
	var refused atomic.Int32
	s.sent.Fail(func(side string, r *http.Request) error {
		switch {
		case side != "spoke" || r.Method == http.MethodGet:
		case r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/secrets/"):
			replaced.Store(true)
		case strings.Contains(r.URL.Path, "/appliedmanifestworks/") && replaced.Load():
			refused.Add(1)
			return faults.ErrCut
		}
		return nil
	})
	work := s.update("web", s.manifests(replace(secret, "Opaque", "example.com/other")))
	s.eventually(func() bool { return refused.Load() > 2 }, "nothing is recorded after the object was replaced")
	told := apimeta.FindStatusCondition(s.work("web").Status.Conditions, workv1.ConditionApplied)
	require.Less(t, told.ObservedGeneration, work.Generation, "the hub was told of an object that is not recorded")
	s.sent.Fail(nil)
	s.ready("web")
	require.True(t, recorded())
}

func TestAnObjectGoesWithTheLastOfItsWorks(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("first", []string{configMap("one", "a", "1"), configMap("two", "a", "1")})
	s.ready("first")
	s.create("second", []string{configMap("one", "a", "1"), configMap("two", "a", "1")})
	s.ready("second")
	require.Len(t, s.get(configMaps, "one").GetOwnerReferences(), 2)
	s.update("first", s.manifests(configMap("two", "a", "1")))
	s.eventually(func() bool { return len(s.get(configMaps, "one").GetOwnerReferences()) == 1 }, "one still has two owners")
	s.remove("first")
	s.gone("first")
	for _, name := range []string{"one", "two"} {
		owners := s.get(configMaps, name).GetOwnerReferences()
		require.Len(t, owners, 1)
		require.Equal(t, s.applied("second").UID, owners[0].UID)
	}
	s.remove("second")
	s.gone("second")
	require.Equal(t, "-", s.data("one", "a"))
}

// TestAnObjectStaysWhileAnotherWorkDeclaresIt: a work that leaves its objects behind has no owner
// reference on them, and a work that was changed a moment ago has not yet set its own.
func TestAnObjectStaysWhileAnotherWorkDeclaresIt(t *testing.T) {
	s := newScene(t)
	s.start()
	leaves := []string{configMap("one", "a", "1"), configMap("two", "a", "1")}
	s.create("leaves", leaves, orphan())
	s.create("drops", append(leaves, configMap("three", "a", "1")))
	s.create("reads", []string{configMap("three", "a", "1")}, strategy("*", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}))
	s.ready("leaves")
	s.ready("drops")
	one, two := s.get(configMaps, "one").GetUID(), s.get(configMaps, "two").GetUID()
	s.eventually(func() bool { return len(s.get(configMaps, "one").GetOwnerReferences()) == 1 }, "the other work owns it")

	s.update("drops", s.manifests(configMap("two", "a", "1")))
	s.eventually(func() bool { return s.data("three", "a") == "-" }, "what is only read by another work stays")
	s.eventually(func() bool { return len(s.get(configMaps, "one").GetOwnerReferences()) == 0 }, "its owner is left")
	s.remove("drops")
	s.gone("drops")
	require.Equal(t, one, s.get(configMaps, "one").GetUID(), "it was deleted and made again")
	require.Equal(t, two, s.get(configMaps, "two").GetUID(), "it was deleted and made again")
}

// A work that could never write an object does not hold it, even if it would leave it behind.
func TestAnOrphanThatWasNeverWrittenHoldsNothing(t *testing.T) {
	s := newScene(t)
	apply(t, s.spoke, serviceAccounts, s.namespace, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"robot"}}`)
	s.start()
	s.create("owns", []string{configMap("one", "a", "1")})
	s.ready("owns")
	s.create("leaves", []string{configMap("one", "a", "1")}, robot(s), orphan())
	s.settled("leaves", workv1.ConditionApplied, metav1.ConditionFalse)
	s.remove("owns")
	s.gone("owns")
	require.Equal(t, "-", s.data("one", "a"))
}

func TestANamespaceOfTheInstallationStaysWhenItsWorkGoes(t *testing.T) {
	const name = "open-cluster-management-agent-addon"
	s := newScene(t)
	s.start()
	apply(t, s.spoke, namespaces, "", fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name))
	uid := s.getIn(namespaces, "", name).GetUID()
	declared := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
	s.create("deleted", []string{declared, configMap("one", "a", "1")})
	s.create("pruned", []string{declared, configMap("two", "a", "1")})
	s.ready("deleted")
	s.ready("pruned")
	require.Contains(t, condition(s.work("deleted"), 0, "Applied").Message, "stays when the work goes")
	s.remove("deleted")
	s.gone("deleted")
	require.Equal(t, "-", s.data("one", "a"))
	s.update("pruned", s.manifests(configMap("two", "a", "2")))
	s.ready("pruned")
	s.eventually(func() bool { return len(s.applied("pruned").Status.AppliedResources) == 1 }, "it is still recorded")
	live := s.getIn(namespaces, "", name)
	require.Equal(t, uid, live.GetUID())
	require.Nil(t, live.GetDeletionTimestamp())
	require.Empty(t, live.GetOwnerReferences(), "nothing of the works is left on it")
}

func TestANamespaceThatOtherWorksLiveInStaysWhenItsWorkGoes(t *testing.T) {
	s := newScene(t)
	s.start()
	declare := func(name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
	}
	lives := func(namespace string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"lives","namespace":%q},"data":{"a":"1"}}`, namespace)
	}
	s.create("pruned", []string{declare("block-a"), configMap("one", "a", "1")})
	s.create("deleted", []string{declare("block-b"), configMap("two", "a", "1")})
	s.create("last", []string{declare("block-c")})
	for _, name := range []string{"pruned", "deleted", "last"} {
		s.ready(name)
	}
	s.create("tenant", []string{lives("block-a"), lives("block-b")})
	s.create("leaver", []string{lives("block-c")})
	s.ready("tenant")
	s.ready("leaver")

	s.update("pruned", s.manifests(configMap("one", "a", "2")))
	s.ready("pruned")
	s.eventually(func() bool { return len(s.applied("pruned").Status.AppliedResources) == 1 }, "the namespace is still recorded")
	s.remove("deleted")
	s.gone("deleted")
	for _, namespace := range []string{"block-a", "block-b"} {
		live := s.getIn(namespaces, "", namespace)
		require.NotNil(t, live, namespace)
		require.Nil(t, live.GetDeletionTimestamp(), namespace)
		require.Empty(t, live.GetOwnerReferences(), "nothing of the works is left on it")
		require.Equal(t, "lives", s.getIn(configMaps, namespace, "lives").GetName())
	}
	require.Equal(t, "-", s.data("two", "a"), "what was not in it went")
	s.eventually(func() bool { return len(s.events(workv1.ReasonNamespaceKept)) == 2 }, "it is not reported for both")
	for _, e := range s.events(workv1.ReasonNamespaceKept) {
		require.Regexp(t, "namespace block-[ab] stays, because it holds objects of other works: tenant", fmt.Sprint(e.Object["note"]))
	}

	// Works that are deleted together remove their namespace as well.
	s.remove("last")
	s.remove("leaver")
	s.gone("leaver")
	s.gone("last")
}

func TestTheOlderOfTwoWorksDecidesAndTheYoungerSaysSo(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("a-first", []string{configMap("one", "a", "1")})
	s.ready("a-first")
	s.create("b-second", []string{configMap("one", "a", "2")})
	work := s.settled("b-second", "Applied", metav1.ConditionFalse)
	require.Equal(t, "Failed to apply manifest: the older ManifestWork a-first declares this object with different content, "+
		"which takes precedence; declare it in one work only, or identically in both",
		condition(work, 0, "Applied").Message)
	s.settled("b-second", "Available", metav1.ConditionTrue)
	s.ready("a-first")
	require.Equal(t, "1", s.data("one", "a"))
	require.Len(t, s.get(configMaps, "one").GetOwnerReferences(), 2)

	s.rests()
	version := s.get(configMaps, "one").GetResourceVersion()
	s.never(func() bool { return len(writes(s.sent.Take(), "spoke")) > 0 }, 2*second, "the works fight")
	require.Equal(t, version, s.get(configMaps, "one").GetResourceVersion())

	s.remove("a-first")
	s.ready("b-second")
	s.eventually(func() bool { return s.data("one", "a") == "2" }, "the younger work did not take over")
}

func TestAWorkThatOnlyCreatesHidesNoRival(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("a-once", []string{configMap("one", "a", "0")}, strategy("*", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}))
	s.ready("a-once")
	s.create("b-older", []string{configMap("one", "a", "1")})
	s.ready("b-older")
	s.create("c-younger", []string{configMap("one", "a", "2")})
	work := s.settled("c-younger", "Applied", metav1.ConditionFalse)
	require.Contains(t, condition(work, 0, "Applied").Message, "the older ManifestWork b-older declares this object with different content")
	require.Equal(t, "1", s.data("one", "a"))
	s.rests()
	s.never(func() bool { return len(writes(s.sent.Take(), "spoke")) > 0 }, 2*second, "the works fight")

	s.update("b-older", strategy("*", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}))
	s.ready("c-younger")
	require.Equal(t, "2", s.data("one", "a"), "a create-only work blocks no other")
}

func TestOwnersOfOtherKindsDoNotKeepAnObject(t *testing.T) {
	s := newScene(t)
	s.start()
	apply(t, s.spoke, configMaps, s.namespace, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other"}}`)
	other := s.get(configMaps, "other")
	// The garbage collector of the cluster removes objects whose owners all do not exist.
	apply(t, s.spoke, applieds, "", fmt.Sprintf(`{"apiVersion":"work.open-cluster-management.io/v1","kind":"AppliedManifestWork","metadata":{"name":"another-%s"},
		"spec":{"hubHash":"x","agentID":"another","manifestWorkName":"y"}}`, s.namespace))
	another := s.getIn(applieds, "", "another-"+s.namespace)
	t.Cleanup(func() { drop(t, s.spoke, applieds, another) })
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")})
	s.ready("web")
	s.patch(
		configMaps, "one",
		fmt.Sprintf(`{"metadata":{"ownerReferences":[%s,{"apiVersion":"v1","kind":"ConfigMap","name":"other","uid":%q}]}}`, owner(s, "one"), other.GetUID()),
	)
	s.patch(
		configMaps, "two",
		fmt.Sprintf(
			`{"metadata":{"ownerReferences":[%s,{"apiVersion":"work.open-cluster-management.io/v1","kind":"AppliedManifestWork","name":%q,"uid":%q}]}}`,
			owner(s, "two"), another.GetName(), another.GetUID(),
		),
	)
	s.remove("web")
	s.gone("web")
	require.Equal(t, "-", s.data("one", "a"))
	kept := s.get(configMaps, "two")
	require.NotNil(t, kept, "another work still owns it")
	require.Len(t, kept.GetOwnerReferences(), 1)
	require.Equal(t, another.GetUID(), kept.GetOwnerReferences()[0].UID)
}

func owner(s *scene, name string) string {
	o := s.get(configMaps, name).GetOwnerReferences()[0]
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}`, o.APIVersion, o.Kind, o.Name, o.UID)
}

func TestAnObjectWithAFinalizerHoldsRemovalAndDeletion(t *testing.T) {
	s := newScene(t)
	s.start()
	held := func(name string) string {
		return replace(configMap(name, "a", "1"), `"namespace":"NS"`, `"namespace":"NS","finalizers":["example.com/hold"]`)
	}
	free := func(name string) {
		s.patch(configMaps, name, `{"metadata":{"finalizers":null}}`)
	}
	s.create("web", []string{held("one"), held("two"), configMap("three", "a", "1")})
	s.ready("web")
	s.update("web", s.manifests(held("two"), configMap("three", "a", "1")))
	s.eventually(func() bool { return s.get(configMaps, "one").GetDeletionTimestamp() != nil }, "the dropped object was not deleted")
	require.Len(t, s.applied("web").Status.AppliedResources, 3, "what waits stays recorded")
	free("one")
	s.eventually(func() bool { return len(s.applied("web").Status.AppliedResources) == 2 }, "what is gone is still recorded")

	s.remove("web")
	s.eventually(func() bool {
		applied := s.applied("web")
		return applied != nil && len(applied.Status.AppliedResources) == 1 && applied.Status.AppliedResources[0].Name == "two"
	}, "the record does not shrink to what waits")
	var deleting *metav1.Condition
	s.eventually(func() bool {
		deleting = apimeta.FindStatusCondition(s.work("web").Status.Conditions, "Deleting")
		return deleting != nil
	}, "it is not reported")
	require.Equal(t, "WorkDeleting", deleting.Reason)
	require.Equal(t, "ManifestWork is being deleted", deleting.Message)
	free("two")
	s.gone("web")
}

func TestARecreatedObjectOfSomebodyElseStays(t *testing.T) {
	s := newScene(t)
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	stop()
	require.NoError(t, s.spoke.Resource(configMaps).Namespace(s.namespace).Delete(context.Background(), "one", metav1.DeleteOptions{}))
	apply(t, s.spoke, configMaps, s.namespace, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"theirs"}}`)
	s.remove("web")
	s.start()
	s.gone("web")
	require.Equal(t, "theirs", s.data("one", "a"))
}

func TestADeletedAppliedManifestWorkIsMadeAnew(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	first := s.applied("web")
	object := s.get(configMaps, "one").GetUID()
	require.NoError(t, s.spoke.Resource(applieds).Delete(context.Background(), first.Name, metav1.DeleteOptions{}))
	s.eventually(func() bool {
		next := s.applied("web")
		return next != nil && next.UID != first.UID && len(
			next.Status.AppliedResources,
		) == 1 && next.Status.AppliedResources[0].UID != "" && s.data("one", "a") == "1"
	}, "it did not come back")
	require.NotEqual(t, object, s.get(configMaps, "one").GetUID())
}
