// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

const (
	oneMap   = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a"}}`
	otherMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"b"}}`
	asRobot  = "execute-as manifestworks/ system:serviceaccount:n:robot"
	asOther  = "execute-as manifestworks/ system:serviceaccount:n:other"
	asAgent  = "execute-as manifestworks/ system:serviceaccount::klusterlet-work-sa"
)

// In Open Cluster Management itself, a user who does not change the executor may have it do
// anything.
func TestWhatAnExecutorDoesIsChangedByWhoMayActAsIt(t *testing.T) {
	checked := all
	checked.NilExecutorValidating = true
	with := func(change func(*workv1.ManifestWork)) *workv1.ManifestWork {
		w := work(executor("n", "robot"), oneMap)
		change(w)
		return w
	}
	for name, tc := range map[string]struct {
		change   func(*workv1.ManifestWork)
		user     authenticationv1.UserInfo
		features webhook.Features
		// needs are the rights that the change requires; without any one of them it is
		// refused with an error that contains refused.
		needs   []string
		refused string
	}{
		"manifests": {
			change:  func(w *workv1.ManifestWork) { w.Spec.Workload = work(nil, otherMap).Spec.Workload },
			needs:   []string{asRobot},
			refused: "executor n/robot",
		},
		"configs": {
			change: func(w *workv1.ManifestWork) {
				w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
					{ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Name: "a"}},
				}
			},
			needs:   []string{asRobot},
			refused: "executor n/robot",
		},
		"the delete option": {change: func(w *workv1.ManifestWork) {
			w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
		}, needs: []string{asRobot}, refused: "executor n/robot"},
		"the delete option of one that goes": {
			change: func(w *workv1.ManifestWork) {
				w.DeletionTimestamp, w.Spec.DeleteOption = at(now), &workv1.DeleteOption{
					PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground,
				}
			},
			needs:   []string{asRobot},
			refused: "executor n/robot",
		},
		"the executor": {
			change:  func(w *workv1.ManifestWork) { w.Spec.Executor = executor("n", "other") },
			needs:   []string{asRobot, asOther},
			refused: "executor n/",
		},
		"no executor any more": {
			change:  func(w *workv1.ManifestWork) { w.Spec.Executor = nil },
			needs:   []string{asRobot},
			refused: "executor n/robot",
		},
		"no executor, which counts": {
			change:   func(w *workv1.ManifestWork) { w.Spec.Executor = nil },
			features: checked,
			needs:    []string{asRobot, asAgent},
			refused:  "executor ",
		},
		"labels":     {change: func(w *workv1.ManifestWork) { w.Labels = map[string]string{"a": "b"} }},
		"finalizers": {change: func(w *workv1.ManifestWork) { w.Finalizers = []string{"example.com/a"} }},
		"finalizers, by the agent": {
			change: func(w *workv1.ManifestWork) { w.Finalizers = []string{"example.com/a"} },
			user:   agentOf("c1"),
		},
		"finalizers of one that goes": {
			change: func(w *workv1.ManifestWork) { w.DeletionTimestamp, w.Finalizers = at(now), nil },
			user:   agentOf("c1"),
		},
		"manifests, by the hub itself": {
			change: func(w *workv1.ManifestWork) { w.Spec.Workload = work(nil, otherMap).Spec.Workload },
			user:   hubItself,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.user.Username == "" {
				tc.user = person
			}
			if tc.features == (webhook.Features{}) {
				tc.features = all
			}
			old := with(func(*workv1.ManifestWork) {})
			h := &stated{rights: tc.needs}
			check(t, send(t, server(h, tc.features), webhook.PathValidateWork, old, with(tc.change), tc.user), 0, "")
			require.Len(t, h.asked, len(tc.needs))
			for i := range h.asked {
				require.Equal(t, person, h.asked[i], "the full identity is checked: name, UID, groups, extra")
				require.Equal(t, authorizationv1.ResourceAttributes{
					Namespace: "c1", Verb: "execute-as", Group: "work.open-cluster-management.io", Resource: "manifestworks",
					Name: h.about[i].Name,
				}, h.about[i])
			}
			for i := range tc.needs {
				rest := append(append([]string{}, tc.needs[:i]...), tc.needs[i+1:]...)
				check(t, send(t, server(&stated{rights: rest}, tc.features), webhook.PathValidateWork, old, with(tc.change), tc.user), 400,
					"user ann cannot manipulate the Manifestwork with "+tc.refused)
			}
		})
	}
	// An executor without an account can be corrected.
	broken := work(&workv1.ManifestWorkExecutor{}, oneMap)
	check(
		t,
		send(
			t, server(&stated{rights: []string{asRobot}}, all), webhook.PathValidateWork, broken,
			work(executor("n", "robot"), oneMap), person,
		),
		0, "",
	)
}

// set returns a replica set with one placement.
func set(change ...func(*workv1alpha1.ManifestWorkReplicaSet)) *workv1alpha1.ManifestWorkReplicaSet {
	s := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "s"}}
	s.Spec.ManifestWorkTemplate = work(nil, oneMap).Spec
	s.Spec.PlacementRefs = []workv1alpha1.LocalPlacementReference{{Name: "p"}}
	for _, c := range change {
		c(s)
	}
	return s
}

func template(executor *workv1.ManifestWorkExecutor, manifests ...string) func(*workv1alpha1.ManifestWorkReplicaSet) {
	return func(s *workv1alpha1.ManifestWorkReplicaSet) {
		s.Spec.ManifestWorkTemplate = work(executor, manifests...).Spec
	}
}

func strategy(r clusterv1alpha1.RolloutStrategy) func(*workv1alpha1.ManifestWorkReplicaSet) {
	return func(s *workv1alpha1.ManifestWorkReplicaSet) { s.Spec.PlacementRefs[0].RolloutStrategy = r }
}

func progressive(deadline string, failures intstr.IntOrString, concurrency intstr.IntOrString) func(*workv1alpha1.ManifestWorkReplicaSet) {
	return strategy(clusterv1alpha1.RolloutStrategy{
		Type: clusterv1alpha1.RolloutTypeProgressive, Progressive: &clusterv1alpha1.RolloutProgressive{
			RolloutConfig:  clusterv1alpha1.RolloutConfig{ProgressDeadline: deadline, MaxFailures: failures},
			MaxConcurrency: &concurrency,
		},
	})
}

func TestValidateSetsOfWorks(t *testing.T) {
	number, text := intstr.FromInt32, intstr.FromString
	const rollout = "spec.placementRefs[0].rolloutStrategy."
	off := all
	off.ManifestWorkReplicaSet = false
	for name, tc := range map[string]struct {
		old, current *workv1alpha1.ManifestWorkReplicaSet
		user         authenticationv1.UserInfo
		rights       []string
		features     webhook.Features
		code         int32
		message      string
	}{
		"a set":        {current: set()},
		"a strategy":   {current: set(progressive("10m", text("10%"), number(3)))},
		"no manifests": {current: set(template(nil)), code: 400, message: "manifests should not be empty"},
		"the same twice": {
			current: set(template(nil, oneMap, oneMap)),
			code:    400,
			message: "duplicate manifest for resource n/a with resource type v1.ConfigMap",
		},
		"no name": {
			current: set(template(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}`)),
			code:    400,
			message: "name must be set in manifest",
		},
		"too large": {
			current: set(
				template(nil, strings.Replace(oneMap, `"n"`, `"n","annotations":{"a":"`+strings.Repeat("x", 500<<10)+`"}`, 1)),
			),
			code:    400,
			message: "which exceeds the 512000 limit",
		},
		"a deadline that is none": {
			current: set(progressive("soon", number(0), number(1))),
			code:    400,
			message: rollout + `progressive.progressDeadline: "soon" is neither None nor a duration`,
		},
		"a deadline that is negative": {
			current: set(progressive("-5m", number(0), number(1))),
			code:    400,
			message: rollout + "progressive.progressDeadline",
		},
		"a share of more than all": {
			current: set(progressive("", text("101%"), number(1))),
			code:    400,
			message: rollout + `progressive.maxFailures: "101%"`,
		},
		"a share that is none": {
			current: set(progressive("", number(0), text("some"))),
			code:    400,
			message: rollout + `progressive.maxConcurrency: "some"`,
		},
		"a number as a text": {
			current: set(progressive("", text("3"), number(1))),
			code:    400,
			message: rollout + `progressive.maxFailures: "3"`,
		},
		"fewer than none": {
			current: set(progressive("", number(-1), number(1))),
			code:    400,
			message: rollout + "progressive.maxFailures: -1 must not be negative",
		},
		"fewer than none at a time": {
			current: set(progressive("", number(0), number(-1))),
			code:    400,
			message: rollout + "progressive.maxConcurrency: -1 must not be negative",
		},
		"another strategy": {
			current: set(strategy(clusterv1alpha1.RolloutStrategy{Type: "Canary"})),
			code:    400,
			message: rollout + "type: ",
		},
		"an executor": {current: set(template(executor("n", "robot"), oneMap)), rights: []string{asRobot}},
		"an executor without the right": {
			current: set(template(executor("n", "robot"), oneMap)),
			code:    400,
			message: "user ann cannot manipulate the Manifestwork with executor n/robot in namespace c1",
		},
		"an executor of no account": {
			current: set(template(&workv1.ManifestWorkExecutor{}, oneMap)),
			code:    400,
			message: "executor service account can not be nil",
		},
		"what an executor does": {
			old:     set(template(executor("n", "robot"), oneMap)),
			current: set(template(executor("n", "robot"), otherMap)),
			code:    400,
			message: "executor n/robot",
		},
		"no executor, checked": {
			current:  set(),
			features: webhook.Features{ManifestWorkReplicaSet: true, NilExecutorValidating: true},
			code:     400,
			message:  "executor /klusterlet-work-sa",
		},
		"the gate is off": {current: set(), features: off, code: 400, message: "ManifestWorkReplicaSet feature is disabled"},
		"the gate is off, and labels": {
			old:      set(),
			current:  set(func(s *workv1alpha1.ManifestWorkReplicaSet) { s.Labels = map[string]string{"a": "b"} }),
			features: off,
		},
		"the gate is off, and it goes": {
			old:      set(),
			current:  set(func(s *workv1alpha1.ManifestWorkReplicaSet) { s.DeletionTimestamp = at(now) }, template(nil)),
			features: off,
		},
		"what stood before, and a label": {
			old:     set(template(nil)),
			current: set(template(nil), func(s *workv1alpha1.ManifestWorkReplicaSet) { s.Labels = map[string]string{"a": "b"} }),
		},
		"a bad strategy that stood before": {
			old:     set(progressive("soon", number(0), number(1))),
			current: set(progressive("soon", number(0), number(1)), template(nil, otherMap)),
		},
		"bad manifests that stood before": {
			old:     set(template(nil)),
			current: set(template(nil), progressive("10m", number(0), number(1))),
		},
		"the hub itself": {
			old:     set(template(executor("n", "robot"), oneMap)),
			current: set(template(executor("n", "robot"), otherMap)),
			user:    hubItself,
		},
		"an agent": {current: set(), user: agentOf("c1"), code: 403, message: "cannot change sets of works"},
		"an executor of a set that is gone": {
			old: set(),
			current: set(
				template(executor("n", "robot"), oneMap),
				func(s *workv1alpha1.ManifestWorkReplicaSet) { s.DeletionTimestamp = at(now) },
			),
			code:    400,
			message: "executor n/robot",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.user.Username == "" {
				tc.user = person
			}
			if tc.features == (webhook.Features{}) {
				tc.features = all
			}
			var old any
			if tc.old != nil {
				old = tc.old
			}
			check(
				t, send(t, server(&stated{rights: tc.rights}, tc.features), webhook.PathValidateWorkSet, old, tc.current, tc.user),
				tc.code, tc.message,
			)
		})
	}
}

// A user who does not change the template may still have its executor act elsewhere, or undo
// what it did.
func TestWhereAnExecutorActsIsChangedByWhoMayActAsIt(t *testing.T) {
	checked, robot := all, template(executor("n", "robot"), oneMap)
	checked.NilExecutorValidating = true
	going := func(s *workv1alpha1.ManifestWorkReplicaSet) { s.DeletionTimestamp = at(now) }
	for name, change := range map[string]func(*workv1alpha1.ManifestWorkReplicaSet){
		"another placement": func(s *workv1alpha1.ManifestWorkReplicaSet) { s.Spec.PlacementRefs[0].Name = "q" },
		"one placement more": func(s *workv1alpha1.ManifestWorkReplicaSet) {
			s.Spec.PlacementRefs = append(s.Spec.PlacementRefs, workv1alpha1.LocalPlacementReference{Name: "q"})
		},
		"no placement":       func(s *workv1alpha1.ManifestWorkReplicaSet) { s.Spec.PlacementRefs = nil },
		"a strategy":         progressive("10m", intstr.FromInt32(0), intstr.FromInt32(1)),
		"what becomes of it": func(s *workv1alpha1.ManifestWorkReplicaSet) { s.Spec.CascadeDeletionPolicy = "Foreground" },
		"an owner that may be missing": func(s *workv1alpha1.ManifestWorkReplicaSet) {
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "none", UID: "u"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(
				old, current *workv1alpha1.ManifestWorkReplicaSet, user authenticationv1.UserInfo,
				features webhook.Features, rights ...string,
			) *admissionv1.AdmissionResponse {
				return send(t, server(&stated{rights: rights}, features), webhook.PathValidateWorkSet, old, current, user)
			}
			check(
				t, answer(set(robot), set(robot, change), person, all, asOther), 400,
				"user ann cannot manipulate the Manifestwork with executor n/robot in namespace c1",
			)
			check(t, answer(set(robot), set(robot, change), person, all, asRobot), 0, "")
			check(t, answer(set(robot), set(robot, change), hubItself, all), 0, "")
			check(t, answer(set(robot), set(robot, change, going), person, all), 0, "")
			check(t, answer(set(), set(change), person, all), 0, "")
			check(t, answer(set(), set(change), person, checked), 400, "executor /klusterlet-work-sa")
			check(t, answer(set(), set(change), person, checked, asAgent), 0, "")
			nobody := template(&workv1.ManifestWorkExecutor{}, oneMap)
			check(t, answer(set(nobody), set(nobody, change), person, all), 0, "")
		})
	}
	free := func(s *workv1alpha1.ManifestWorkReplicaSet) {
		s.Labels, s.Finalizers = map[string]string{"a": "b"}, []string{"example.com/a"}
	}
	check(t, send(t, server(&stated{}, all), webhook.PathValidateWorkSet, set(robot), set(robot, free), person), 0, "")
}

func TestWhatCannotWorkIsWarnedOf(t *testing.T) {
	configs := func(s *workv1.ManifestWorkSpec, paths []string, pointers ...string) {
		c := workv1.ManifestConfigOption{ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Name: "a"}}
		rule := workv1.FeedbackRule{Type: workv1.FeedbackRuleTypeJSONPaths}
		for _, path := range paths {
			rule.JSONPaths = append(rule.JSONPaths, workv1.JSONPath{Name: "v", Path: path})
		}
		c.FeedbackRules = []workv1.FeedbackRule{rule}
		c.UpdateStrategy = &workv1.UpdateStrategy{
			ServerSideApply: &workv1.ServerSideApplyConfig{IgnoreFields: []workv1.IgnoreField{{JSONPointers: pointers}}},
		}
		s.ManifestConfigs = []workv1.ManifestConfigOption{c}
	}
	h := server(&stated{}, all)
	good, bad, many := work(nil, oneMap), work(nil, oneMap), work(nil, oneMap)
	configs(&good.Spec, []string{".data.a", ".items[*].name"}, "/data/a")
	configs(&bad.Spec, []string{".data.a", ".data[?("}, "data/a")
	configs(&many.Spec, strings.Split(strings.Repeat(".data[?("+strings.Repeat("ö", 200)+" ", 20), " ")[:20])
	require.Empty(t, send(t, h, webhook.PathValidateWork, nil, good, person).Warnings)
	warnings := send(t, h, webhook.PathValidateWork, nil, bad, person).Warnings
	require.Len(t, warnings, 2)
	require.Contains(
		t, warnings[0],
		`spec.manifestConfigs[0].feedbackRules[0].jsonPaths[1].path: ".data[?(" gives no value: it is not a JSONPath`,
	)
	require.Contains(
		t, warnings[1],
		`spec.manifestConfigs[0].updateStrategy.serverSideApply.ignoreFields[0].jsonPointers[0]: "data/a" must begin with "/"`,
	)
	warnings = send(t, h, webhook.PathValidateWork, nil, many, person).Warnings
	require.Len(t, warnings, 8)
	require.Equal(t, "and 13 more like these", warnings[7])
	for _, w := range warnings {
		require.LessOrEqual(t, len(w), 256)
	}
	require.Empty(
		t, send(t, h, webhook.PathValidateWork, nil, work(nil), person).Warnings, "a refused object gets no warnings",
	)

	long := set(func(s *workv1alpha1.ManifestWorkReplicaSet) {
		s.Name = strings.Repeat("s", 61)
		s.Spec.PlacementRefs = append(s.Spec.PlacementRefs, s.Spec.PlacementRefs[0])
		s.Spec.ManifestWorkTemplate.ManifestConfigs = bad.Spec.ManifestConfigs
	})
	response := send(t, h, webhook.PathValidateWorkSet, nil, long, person)
	require.True(t, response.Allowed)
	require.Len(t, response.Warnings, 4)
	require.Contains(t, response.Warnings[0], "use a shorter name")
	require.Contains(t, response.Warnings[1], `spec.placementRefs[1].name: placement "p" is listed twice`)
	require.Contains(t, response.Warnings[2], "spec.manifestWorkTemplate.manifestConfigs[0].feedbackRules[0]")
}
