// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// TestACompleteJobRestsWhenTheHubMoves gives the agent another hub, or another address of
// the same hub, after a Job has completed and was removed. There, the work has another
// record, and a status that does not cover this generation.
func TestACompleteJobRestsWhenTheHubMoves(t *testing.T) {
	t.Parallel()
	job := fmt.Sprintf(migration, "example.com/migration:1")
	for name, move := range map[string]func(*scene){
		"to another address": func(s *scene) { s.update("job", s.manifests(job, data("beside", "2"))) },
		"to another hub": func(s *scene) {
			s.forget("job")
			s.create("job", []string{job, data("beside", "2")}, s.ruled("batch", "jobs", "migration", builtIn(workv1.ConditionComplete)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			stop := s.start()
			s.create("job", []string{job, data("beside", "1")}, s.ruled("batch", "jobs", "migration", builtIn(workv1.ConditionComplete)))
			s.finish("migration")
			s.soonSays("job", "Complete", "True ConditionRulesAggregated Job is finished")
			s.deleteObject(jobs, "migration")
			s.soonManifestSays("job", 0, "Available", "False ResourceNotAvailable Resource is not available")
			stop()
			before := s.applied("job")
			t.Cleanup(func() {
				for _, a := range s.list(s.spoke, applieds, "") {
					if a.GetUID() == before.UID {
						drop(t, s.spoke, applieds, &a)
					}
				}
			})
			move(s)
			first := s.config.HubHash
			s.config.HubHash = strings.Repeat("0", 56) + s.config.HubHash[:8]
			rests := func() {
				t.Helper()
				s.eventually(func() bool {
					return strings.HasPrefix(s.manifestSays("job", 0, "Complete"), "True ConditionRuleEvaluated ")
				}, "it is not known to be complete")
				s.soonManifestSays("job", 0, "Available", "False ResourceNotAvailable Resource is not available")
				require.Nil(t, s.get(jobs, "migration"), "the job runs again")
				require.Equal(t, before.Annotations[workv1.AnnotationCompleteManifests], s.applied("job").Annotations[workv1.AnnotationCompleteManifests])
			}
			stop = s.start()
			s.eventually(func() bool { return s.data("beside", "k") == "2" }, "the work is not applied from there")
			rests()
			stop()
			s.deleteObject(configMaps, "beside")
			stop = s.start()
			s.eventually(func() bool { return s.data("beside", "k") == "2" }, "what is not complete is repaired")
			rests()
			stop()
			move(s)
			s.config.HubHash = first
			s.deleteObject(configMaps, "beside")
			s.start()
			s.eventually(func() bool { return s.data("beside", "k") == "2" }, "the work is not applied on the way back")
			rests()
		})
	}
}

// TestAJobThatEndsWhileTheAgentIsAway removes a finished Job before the agent has seen
// that it finished. If the agent sees it once more while it is being deleted, it knows; a
// Job that is gone without a trace may have been removed while it ran, and is created
// again.
func TestAJobThatEndsWhileTheAgentIsAway(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ held, again bool }{
		"it is still on its way out": {held: true},
		"it is gone":                 {again: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			stop := s.start()
			s.create("job", []string{fmt.Sprintf(migration, "example.com/migration:1")}, s.ruled("batch", "jobs", "migration", builtIn(workv1.ConditionComplete)))
			s.soonSays("job", "Complete", "False ConditionRulesAggregated Job is not finished")
			if tc.held {
				s.patch(jobs, "migration", `{"metadata":{"finalizers":["example.com/held"]}}`)
			}
			stop()
			s.finish("migration")
			s.eventually(func() bool {
				at, _, _ := unstructured.NestedString(s.get(jobs, "migration").Object, "status", "completionTime")
				return at != ""
			}, "the job does not end")
			first := s.get(jobs, "migration").GetUID()
			s.deleteObject(jobs, "migration")
			s.start()
			if tc.again {
				s.eventually(func() bool { j := s.get(jobs, "migration"); return j != nil && j.GetUID() != first }, "drift is not repaired")
				return
			}
			s.soonSays("job", "Complete", "True ConditionRulesAggregated Job is finished")
			s.patch(jobs, "migration", `{"metadata":{"finalizers":null}}`)
			s.soonManifestSays("job", 0, "Available", "False ResourceNotAvailable Resource is not available")
			s.rests()
			require.Nil(t, s.get(jobs, "migration"), "the job runs again")
			require.Equal(t, "True AppliedManifestComplete Apply manifest complete", s.manifestSays("job", 0, "Applied"))
		})
	}
}
