// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// later makes the record of a work say that a later state of it was applied, as after a
// restore of the hub from a backup.
func (s *scene) later(name string, generation int64, version string) {
	s.t.Helper()
	s.annotateRecord(name, workv1.AnnotationLastSeen, fmt.Sprintf(`"%s %d %s"`, s.work(name).UID, generation, version))
}

// annotateRecord writes an annotation on the record of a work, in JSON.
func (s *scene) annotateRecord(name, key, value string) {
	s.t.Helper()
	_, err := s.spoke.Resource(applieds).Patch(context.Background(), s.applied(name).Name, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, key, value), metav1.PatchOptions{FieldManager: "somebody"})
	require.NoError(s.t, err)
}

// awaitHeld waits until the work reports that removals wait for a confirmation.
func (s *scene) awaitHeld(name string) metav1.Condition {
	s.t.Helper()
	var c *metav1.Condition
	s.eventually(func() bool {
		c = apimeta.FindStatusCondition(s.work(name).Status.Conditions, workv1.ConditionRemovalHeld)
		return c != nil
	}, "%s does not say that removals are held", name)
	require.Equal(s.t, workv1.ReasonHubWentBack, c.Reason)
	require.Contains(s.t, c.Message, "kubectl annotate appliedmanifestworks "+s.applied(name).Name+" "+workv1.AnnotationRemovalHeld+"-")
	return *c
}

func TestAHubThatWentBackRemovesNothingUntilThatIsConfirmed(t *testing.T) {
	s := newScene(t)
	s.config.Grace = time.Hour
	stop := s.start()
	for _, name := range []string{"replaced", "older", "deleted", "missed"} {
		s.create(name, []string{configMap(name+"-a", "k", "1"), configMap(name+"-b", "k", "1")})
	}
	for _, name := range []string{"replaced", "older", "deleted", "missed"} {
		s.ready(name)
	}
	uid := s.get(configMaps, "replaced-a").GetUID()
	stop()

	s.forget("replaced")
	s.create("replaced", []string{configMap("replaced-a", "k", "2")})
	s.later("older", 7, "1")
	s.update("older", s.manifests(configMap("older-a", "k", "2")))
	s.later("deleted", 7, "1")
	s.remove("deleted")
	s.later("missed", 1, "9000000000000000")
	s.forget("missed")
	s.clock.stop()
	stop = s.start()

	require.Contains(t, s.awaitHeld("replaced").Message, "configmaps "+s.namespace+"/replaced-b")
	s.awaitHeld("older")
	s.awaitHeld("deleted")
	s.settled("replaced", workv1.ConditionApplied, metav1.ConditionTrue)
	require.Equal(t, "2", s.data("replaced-a", "k"), "what is declared is applied")
	s.eventually(func() bool { return len(s.events(workv1.ConditionRemovalHeld)) == 3 }, "no Event for each of them")
	s.eventually(func() bool { return s.applied("missed").Annotations[workv1.AnnotationRemovalHeld] != "" }, "the missed one is not held")
	s.eventually(func() bool { return s.applied("missed").Status.EvictionStartTime != nil }, "not stamped")

	// Neither a restart of the agent nor time confirms anything.
	stop()
	s.clock.forward(2 * time.Hour)
	s.start()
	s.eventually(func() bool { return len(s.events("EvictionHeld")) > 0 }, "it is not reported that the missing one is kept")
	s.update("older", func(w *workv1.ManifestWork) { w.Labels = map[string]string{"a": "b"} })
	s.never(func() bool {
		for _, name := range []string{"replaced-b", "older-b", "deleted-a", "deleted-b", "missed-a", "missed-b"} {
			if s.data(name, "k") != "1" {
				return true
			}
		}
		return false
	}, 2*second, "something is removed without confirmation")

	s.annotateRecord("replaced", workv1.AnnotationRemovalHeld, "null")
	s.eventually(func() bool { return s.data("replaced-b", "k") == "-" }, "a confirmed removal does not happen")
	s.over("replaced")
	require.Equal(t, uid, s.get(configMaps, "replaced-a").GetUID())
	s.update("older", s.manifests(configMap("older-a", "k", "2"), configMap("older-b", "k", "2")))
	s.over("older")
	s.update("older", s.manifests(configMap("older-a", "k", "2")))
	s.eventually(func() bool { return s.data("older-b", "k") == "-" }, "what is declared again and dropped does not go")
	s.annotateRecord("deleted", workv1.AnnotationRemovalHeld, "null")
	s.gone("deleted")
	require.Equal(t, "-", s.data("deleted-a", "k"))
	require.NoError(t, s.spoke.Resource(applieds).Delete(context.Background(), s.applied("missed").Name, metav1.DeleteOptions{}))
	s.eventually(func() bool { return s.applied("missed") == nil && s.data("missed-a", "k") == "-" }, "the confirmed one does not go")
}

// over waits until no removal of the work is held any more.
func (s *scene) over(name string) {
	s.t.Helper()
	s.eventually(func() bool {
		return s.applied(name).Annotations[workv1.AnnotationRemovalHeld] == "" &&
			apimeta.FindStatusCondition(s.work(name).Status.Conditions, workv1.ConditionRemovalHeld) == nil
	}, "removals of %s are still held", name)
}

func TestTheRecordNotesWhichGenerationWasCarriedOut(t *testing.T) {
	s := newScene(t)
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")})
	s.ready("web")
	s.eventually(func() bool {
		return strings.HasPrefix(s.applied("web").Annotations[workv1.AnnotationLastSeen], string(s.work("web").UID)+" 1 ")
	}, "generation 1 is not noted")
	s.update("web", s.manifests(configMap("one", "a", "1")))
	s.ready("web")
	s.eventually(func() bool {
		return strings.HasPrefix(s.applied("web").Annotations[workv1.AnnotationLastSeen], string(s.work("web").UID)+" 2 ")
	}, "generation 2 is not noted")
	require.Equal(t, "-", s.data("two", "a"), "an ordinary change is held up")
	stop()
}
