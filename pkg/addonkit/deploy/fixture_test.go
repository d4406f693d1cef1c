// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var start = time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)

// object makes a manifest: "Deployment web", "Job clean hook", "ConfigMap a
// location=hosting", "ConfigMap a size=1000", "ConfigMap a orphan".
func object(t *testing.T, text string) addonkit.Manifest {
	t.Helper()
	words := strings.Fields(text)
	version := map[string]string{"Deployment": "apps/v1", "Job": "batch/v1"}[words[0]]
	if version == "" {
		version = "v1"
	}
	annotations, labels, size := map[string]string{}, map[string]string{}, 0
	var err error
	for _, w := range words[2:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "hook":
			annotations[addonv1alpha1.AnnotationPreDelete] = ""
		case "hooklabel":
			labels[addonv1alpha1.AnnotationPreDelete] = "x"
		case "oldhook":
			labels["open-cluster-management.io/addon-pre-delete"] = ""
		case "location":
			annotations[addonv1alpha1.AnnotationHostedManifestLocation] = value
		case "orphan":
			annotations[addonv1alpha1.AnnotationDeletionOrphan] = ""
		case "size":
			size, err = strconv.Atoi(value)
			require.NoError(t, err)
		default:
			labels[key] = value
		}
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": version, "kind": words[0],
		"metadata": map[string]any{"name": words[1], "namespace": "default", "annotations": annotations, "labels": labels, "creationTimestamp": nil},
	})
	require.NoError(t, err)
	m, err := addonkit.Parse(raw)
	require.NoError(t, err)
	if size > 0 {
		labels["fill"] = strings.Repeat("x", size-len(m.Raw)-len(`"fill":"",`))
		if len(labels) == 1 {
			labels["fill"] += "x"
		}
		m.Object.SetLabels(labels)
		m.Raw, err = json.Marshal(m.Object)
		require.NoError(t, err)
		require.Len(t, m.Raw, size)
	}
	return m
}

// state is an instance of the add-on web on cluster c1 that may be deployed.
func state(t *testing.T, manifests ...string) State {
	t.Helper()
	s := State{
		AddOn: &addonv1alpha1.ManagedClusterAddOn{
			ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "web", UID: "u", Generation: 1},
			Status: addonv1alpha1.ManagedClusterAddOnStatus{Conditions: []metav1.Condition{
				{Type: addonv1alpha1.ConditionRegistrationApplied, Status: metav1.ConditionFalse},
			}},
		},
		Cluster: accepted("c1"),
		Now:     start,
	}
	for _, m := range manifests {
		s.Manifests = append(s.Manifests, object(t, m))
	}
	return s
}

func hosted(s State) State {
	s.Hosting = &Hosting{Name: "h1", Cluster: accepted("h1")}
	return s
}

func accepted(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
}

// run carries out a plan in the state, as the executor and an API server do, until
// nothing changes; works that are deleted are gone at once. It returns what was done.
func run(t *testing.T, s *State) []string {
	t.Helper()
	var done []string
	for range 10 {
		p := Decide(*s)
		now, rest := outline(t, p), true
		if o, ok := p.Object.(*addonv1alpha1.ManagedClusterAddOn); ok && o != nil {
			before := s.AddOn
			s.AddOn = o
			rest = reflect.DeepEqual(before, o)
			if !slices.Equal(before.Finalizers, o.Finalizers) {
				now = append(now, "finalizers "+strings.Join(short(o.Finalizers), " "))
			}
		}
		carryOut(t, s, p)
		if len(now) == 0 && rest {
			return done
		}
		done = append(done, now...)
	}
	require.Fail(t, "the decision finds no rest", done)
	return nil
}

func carryOut(t *testing.T, s *State, p reconcile.Plan) {
	t.Helper()
	s.Works = slices.Clone(s.Works)
	for _, a := range reconcile.Of[reconcile.Create](p.Writes) {
		w, ok := a.Object.(*workv1.ManifestWork)
		require.True(t, ok)
		require.True(t, a.Lenient)
		w.UID, w.Generation = types.UID("uid-"+w.Name), 1
		s.Works = append(s.Works, w)
	}
	for _, step := range reconcile.Of[reconcile.Patch](p.Writes) {
		i := slices.IndexFunc(s.Works, func(w *workv1.ManifestWork) bool {
			return w.UID == step.Target.UID && w.Namespace == step.Target.Namespace
		})
		require.GreaterOrEqual(t, i, 0)
		s.Works[i] = patched(t, s.Works[i], step.Body)
	}
	for _, d := range reconcile.Of[reconcile.Remove](p.Writes) {
		s.Works = slices.DeleteFunc(s.Works, func(w *workv1.ManifestWork) bool { return w.Namespace == d.Namespace && w.Name == d.Name })
	}
}

// patched returns a work after a merge patch.
func patched(t *testing.T, w *workv1.ManifestWork, patch map[string]any) *workv1.ManifestWork {
	t.Helper()
	raw, err := json.Marshal(w)
	require.NoError(t, err)
	all := map[string]any{}
	require.NoError(t, json.Unmarshal(raw, &all))
	raw, err = json.Marshal(merge(all, patch))
	require.NoError(t, err)
	out := &workv1.ManifestWork{}
	require.NoError(t, json.Unmarshal(raw, out))
	out.Generation++
	return out
}

func merge(into map[string]any, patch map[string]any) map[string]any {
	if into == nil {
		into = map[string]any{}
	}
	for key, value := range patch {
		inner, ok := value.(map[string]any)
		have, _ := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case ok:
			into[key] = merge(have, inner)
		default:
			into[key] = value
		}
	}
	return into
}

// outline is what a plan does to works: "create c1/addon-web-deploy-0: a b", "patch
// c1/…: a", "delete c1/…", and its events.
func outline(t *testing.T, p reconcile.Plan) []string {
	t.Helper()
	var out []string
	for _, a := range reconcile.Of[reconcile.Create](p.Writes) {
		w, ok := a.Object.(*workv1.ManifestWork)
		require.True(t, ok)
		out = append(out, fmt.Sprintf("create %s/%s: %s", w.Namespace, w.Name, contents(t, w)))
	}
	for _, s := range reconcile.Of[reconcile.Patch](p.Writes) {
		w := patched(t, &workv1.ManifestWork{}, s.Body)
		out = append(out, fmt.Sprintf("patch %s/%s: %s", s.Target.Namespace, s.Target.Name, contents(t, w)))
	}
	for _, d := range reconcile.Of[reconcile.Remove](p.Writes) {
		out = append(out, "delete "+d.Namespace+"/"+d.Name)
	}
	for _, e := range p.Events {
		out = append(out, e.Type+" "+e.Reason+": "+e.Message)
	}
	return out
}

// contents are the names of the objects of a work.
func contents(t *testing.T, w *workv1.ManifestWork) string {
	t.Helper()
	var out []string
	for _, raw := range w.Spec.Workload.Manifests {
		m, err := addonkit.Parse(raw.Raw)
		require.NoError(t, err)
		out = append(out, m.Name)
	}
	return strings.Join(out, " ")
}

func short(finalizers []string) []string {
	var out []string
	for _, f := range finalizers {
		out = append(out, strings.TrimPrefix(f, "addon.open-cluster-management.io/"))
	}
	return out
}

// condition is "True AddonManifestApplied: text", or "" when there is none.
func condition(a *addonv1alpha1.ManagedClusterAddOn, kind string) string {
	c := apimeta.FindStatusCondition(a.Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

// report lets the agent of a cluster answer for a work.
func report(t *testing.T, s *State, name string, status metav1.ConditionStatus, feedback map[string]string) {
	t.Helper()
	i := slices.IndexFunc(s.Works, func(w *workv1.ManifestWork) bool { return w.Namespace+"/"+w.Name == name })
	require.GreaterOrEqual(t, i, 0, "no work %s", name)
	w := s.Works[i].DeepCopy()
	s.Works[i] = w
	for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable} {
		apimeta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Said", ObservedGeneration: w.Generation})
	}
	w.Status.ResourceStatus.Manifests = nil
	for _, raw := range w.Spec.Workload.Manifests {
		m, err := addonkit.Parse(raw.Raw)
		require.NoError(t, err)
		entry := workv1.ManifestCondition{ResourceMeta: workv1.ManifestResourceMeta{Group: m.Group, Kind: m.Kind, Namespace: m.Namespace, Name: m.Name}}
		for _, key := range slices.Sorted(maps.Keys(feedback)) {
			value := feedback[key]
			entry.StatusFeedback.Values = append(entry.StatusFeedback.Values, workv1.FeedbackValue{
				Name:       key,
				FieldValue: workv1.FieldValue{Type: workv1.ValueTypeString, String: &value},
			})
		}
		w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, entry)
	}
}

// deleted marks the instance as being deleted.
func deleted(s *State) {
	s.AddOn = s.AddOn.DeepCopy()
	s.AddOn.DeletionTimestamp = &metav1.Time{Time: start}
}
