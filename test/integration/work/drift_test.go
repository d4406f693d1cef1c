// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

func TestADeletedObjectComesBack(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")})
	before := s.ready("web")
	uid := s.get(configMaps, "one").GetUID()
	require.NoError(t, s.spoke.Resource(configMaps).Namespace(s.namespace).Delete(context.Background(), "one", metav1.DeleteOptions{}))
	s.eventually(func() bool { return s.data("one", "a") == "1" }, "it did not come back")
	next := s.get(configMaps, "one").GetUID()
	require.NotEqual(t, uid, next)
	s.eventually(func() bool {
		for _, r := range s.applied("web").Status.AppliedResources {
			if r.Name == "one" && r.UID == next {
				return true
			}
		}
		return false
	}, "the new identity is not recorded")
	require.Equal(t, before.ResourceVersion, s.work("web").ResourceVersion, "the hub hears nothing of it")
}

func TestAChangedFieldIsRepairedAndForeignChangesAreNot(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	s.patch(configMaps, "one", `{"data":{"a":"2","theirs":"2"}}`)
	s.eventually(func() bool { return s.data("one", "a") == "1" }, "it was not repaired")
	require.Equal(t, "2", s.data("one", "theirs"))

	s.rests()
	for i := range 5 {
		s.patch(configMaps, "one", fmt.Sprintf(`{"data":{"theirs":"%d"},"metadata":{"labels":{"l":"%d"}}}`, i, i))
	}
	s.never(func() bool { return len(s.sent.Take()) > 0 }, second, "a change of what is not ours costs no request")
	s.patch(configMaps, "one", `{"metadata":{"ownerReferences":null}}`)
	s.eventually(func() bool { return len(s.get(configMaps, "one").GetOwnerReferences()) == 1 }, "the owner did not come back")
}

func TestDriftWhileTheAgentWasAwayIsRepaired(t *testing.T) {
	s := newScene(t)
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")})
	s.ready("web")
	stop()
	require.NoError(t, s.spoke.Resource(configMaps).Namespace(s.namespace).Delete(context.Background(), "one", metav1.DeleteOptions{}))
	s.patch(configMaps, "two", `{"data":{"a":"2"}}`)
	s.start()
	s.eventually(func() bool { return s.data("one", "a") == "1" && s.data("two", "a") == "1" }, "not repaired")
}

func TestDriftIsRepairedWhileTheHubIsAway(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	s.sent.Cut("hub")
	require.NoError(t, s.spoke.Resource(configMaps).Namespace(s.namespace).Delete(context.Background(), "one", metav1.DeleteOptions{}))
	s.eventually(func() bool { return s.data("one", "a") == "1" }, "it did not come back")
}

func TestAtRestNothingIsSent(t *testing.T) {
	s := newScene(t)
	s.start()
	for i := range 10 {
		s.create(fmt.Sprintf("web-%d", i), []string{configMap(fmt.Sprintf("one-%d", i), "a", "1"), replace(account, "NAME", fmt.Sprintf("sa-%d", i))})
	}
	for i := range 10 {
		s.ready(fmt.Sprintf("web-%d", i))
	}
	s.rests()
	s.never(func() bool { return len(s.sent.Take()) > 0 }, 5*second, "the agent does not stay at rest")
}

func TestAFightIsDampedAndSaid(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	s.clock.stop()
	for i := range 5 {
		s.clock.forward(second)
		s.patch(configMaps, "one", fmt.Sprintf(`{"data":{"a":"theirs-%d"}}`, i))
		s.eventually(func() bool { return s.data("one", "a") == "1" }, "repair %d", i)
	}
	s.eventually(func() bool {
		return strings.Contains(condition(s.work("web"), 0, "Applied").Message, "others keep changing the object")
	}, "the fight is not reported")
	s.clock.forward(9 * second)
	s.patch(configMaps, "one", `{"data":{"a":"theirs"}}`)
	s.never(func() bool { return s.data("one", "a") == "1" }, 2*second, "the agent fights on at full speed")
	s.clock.forward(second)
	// A label causes an event, because the clock does not drive timers. The agent may have been
	// woken before it: another change of ours would then come too early for the stopped clock.
	s.patch(configMaps, "one", `{"metadata":{"labels":{"l":"1"}}}`)
	s.eventually(func() bool { return s.data("one", "a") == "1" }, "the agent gave up")

	s.clock.forward(time.Minute)
	s.patch(configMaps, "one", `{"metadata":{"labels":{"l":"2"}}}`)
	s.eventually(func() bool { return condition(s.work("web"), 0, "Applied").Message == workv1.MessageManifestApplied }, "the fight is said when it is over")
	s.patch(configMaps, "one", `{"data":{"a":"theirs again"}}`)
	s.clock.forward(second)
	s.patch(configMaps, "one", `{"data":{"a":"and again"}}`)
	s.eventually(func() bool { return s.data("one", "a") == "1" }, "the next change is not repaired at once")
}

func TestObjectsInManyNamespacesAreWatchedByOneWatch(t *testing.T) {
	s := newScene(t)
	s.start()
	var manifests []string
	for i := range 9 {
		name := fmt.Sprintf("%s-%d", s.namespace, i)
		apply(t, s.spoke, namespaces, "", fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name))
		manifests = append(manifests, replace(configMap("one", "a", "1"), "NS", name))
	}
	s.create("web", manifests)
	s.ready("web")
	s.eventually(func() bool {
		for _, r := range s.sent.Take() {
			if r == "spoke GET /api/v1/configmaps" {
				return true
			}
		}
		return false
	}, "there is no watch of the whole cluster")
	last := fmt.Sprintf("%s-%d", s.namespace, 8)
	require.NoError(t, s.spoke.Resource(configMaps).Namespace(last).Delete(context.Background(), "one", metav1.DeleteOptions{}))
	s.eventually(func() bool { return s.getIn(configMaps, last, "one") != nil }, "drift is not repaired")
}

func TestADefinitionThatArrivesLaterIsNoticedAtOnce(t *testing.T) {
	s := newScene(t)
	s.start()
	grantWidgets(s)
	kind, definition := widgetDefinition(s)
	widget := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":%q,"metadata":{"name":"w","namespace":"NS"},"spec":{"size":1}}`, kind)
	s.create("web", []string{widget, configMap("one", "a", "1")})
	work := s.settled("web", "Applied", metav1.ConditionFalse)
	require.Contains(t, condition(work, 0, "Applied").Message, fmt.Sprintf("the server doesn't have a resource type %q", kind))
	require.Equal(t, "Resource meta is incomplete", condition(work, 0, "Available").Message)
	require.Empty(t, work.Status.ResourceStatus.Manifests[0].ResourceMeta.Resource)
	require.Equal(t, metav1.ConditionTrue, condition(work, 1, "Applied").Status)
	apply(t, s.spoke, definitions, "", definition)
	s.ready("web")
	s.remove("web")
	s.gone("web")
}

func TestADefinitionAndItsObjectTravelInOneWork(t *testing.T) {
	s := newScene(t)
	s.start()
	grantWidgets(s)
	kind, definition := widgetDefinition(s)
	widget := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":%q,"metadata":{"name":"w","namespace":"NS"},"spec":{"size":1}}`, kind)
	s.create("web", []string{widget, definition})
	s.ready("web")
	gvr := definitionsOf(kind)
	s.patch(gvr, "w", `{"spec":{"size":2}}`)
	s.eventually(func() bool { return fmt.Sprint(s.get(gvr, "w").Object["spec"]) == "map[size:1]" }, "drift of a custom object is not repaired")
	s.remove("web")
	s.gone("web")
	require.Nil(t, s.getIn(definitions, "", gvr.Resource+".example.com"))
}

func TestARemovedDefinitionHarmsNoOtherKind(t *testing.T) {
	s := newScene(t)
	s.start()
	grantWidgets(s)
	kind, definition := widgetDefinition(s)
	apply(t, s.spoke, definitions, "", definition)
	widget := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":%q,"metadata":{"name":"w","namespace":"NS"},"spec":{"size":1}}`, kind)
	s.create("web", []string{widget, configMap("one", "a", "1")})
	s.ready("web")
	gvr := definitionsOf(kind)
	require.NoError(t, s.spoke.Resource(definitions).Delete(context.Background(), gvr.Resource+".example.com", metav1.DeleteOptions{}))
	work := s.settled("web", "Applied", metav1.ConditionFalse)
	require.Equal(t, metav1.ConditionTrue, condition(work, 1, "Applied").Status)
	s.update("web", s.manifests(widget, configMap("one", "a", "2")))
	s.eventually(func() bool { return s.data("one", "a") == "2" }, "other kinds wait")
	// While the definition is on its way out, its kind is refused already, and what is applied to it goes with it.
	s.eventually(func() bool { return s.getIn(definitions, "", gvr.Resource+".example.com") == nil }, "the definition does not go")
	apply(t, s.spoke, definitions, "", definition)
	s.ready("web")
	require.NotNil(t, s.get(gvr, "w"))
	s.remove("web")
	s.gone("web")
}
