// SPDX-License-Identifier: Apache-2.0

package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

var start = time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)

func manifest(t *testing.T, kind, name string, spec map[string]any) addonkit.Manifest {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "n"}, "spec": spec})
	require.NoError(t, err)
	m, err := addonkit.Parse(raw)
	require.NoError(t, err)
	return m
}

// state is an add-on with two Deployments, one of them without replicas, and a
// DaemonSet, whose manifests have been inspected.
func state(t *testing.T, mode addonkit.HealthMode) State {
	t.Helper()
	return State{
		Instance: addonkit.Instance{
			AddOn: &addonv1alpha1.ManagedClusterAddOn{
				ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "web", Generation: 3},
				Status: addonv1alpha1.ManagedClusterAddOnStatus{
					Conditions: []metav1.Condition{{Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionFalse}},
				},
			},
			Cluster: &clusterv1.ManagedCluster{},
		},
		Health: addonkit.Health{Mode: mode},
		Manifests: []addonkit.Manifest{
			manifest(t, "Deployment", "web", nil), manifest(t, "Deployment", "off", map[string]any{"replicas": 0}), manifest(t, "DaemonSet", "node", nil),
		},
		Now: start,
	}
}

// work answers: "deployments web Replicas=2 ReadyReplicas=1".
func work(applied metav1.ConditionStatus, answers ...string) *workv1.ManifestWork {
	w := &workv1.ManifestWork{}
	if applied != "" {
		w.Status.Conditions = []metav1.Condition{{Type: workv1.ConditionApplied, Status: applied}}
	}
	for _, a := range answers {
		words := strings.Fields(a)
		m := workv1.ManifestCondition{ResourceMeta: workv1.ManifestResourceMeta{Group: "apps", Resource: words[0], Namespace: "n", Name: words[1]}}
		for _, pair := range words[2:] {
			name, text, _ := strings.Cut(pair, "=")
			var value int64
			_, _ = fmt.Sscan(text, &value)
			m.StatusFeedback.Values = append(m.StatusFeedback.Values, workv1.FeedbackValue{
				Name:       name,
				FieldValue: workv1.FieldValue{Type: workv1.ValueTypeInteger, Integer: &value},
			})
		}
		w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, m)
	}
	return w
}

// said is "Mode; True Reason: message" after a decision.
func said(s State) string {
	into := s.AddOn.DeepCopy()
	Set(s, into)
	out := string(into.Status.HealthCheck.Mode)
	if c := apimeta.FindStatusCondition(into.Status.Conditions, addonv1alpha1.ConditionAvailable); c != nil {
		out += fmt.Sprintf("; %s %s: %s", c.Status, c.Reason, c.Message)
	}
	return out
}

const yes, no = metav1.ConditionTrue, metav1.ConditionFalse

// TestHealthIsSaidWithTheAnswerThatItFollowsFrom: both are in one write.
func TestHealthIsSaidWithTheAnswerThatItFollowsFrom(t *testing.T) {
	s := state(t, addonkit.HealthWork)
	s.Works = []*workv1.ManifestWork{work(yes)}
	answered := s.AddOn.DeepCopy()
	s.AddOn.Status.Conditions = nil
	into := s.AddOn.DeepCopy()
	Set(s, into)
	require.Empty(t, into.Status.Conditions)
	Set(s, answered)
	require.True(t, apimeta.IsStatusConditionTrue(answered.Status.Conditions, addonv1alpha1.ConditionAvailable))
}

func TestModes(t *testing.T) {
	for mode, want := range map[addonkit.HealthMode]string{
		"":                         "",
		"Nonsense":                 "",
		addonkit.HealthLease:       "Lease",
		addonkit.HealthNone:        "Customized",
		addonkit.HealthWork:        "Customized; Unknown WorkNotFound: Addon manifestWork is not found",
		addonkit.HealthDeployments: "Customized; Unknown WorkNotFound: Addon manifestWork is not found",
		addonkit.HealthWorkloads:   "Customized; Unknown WorkNotFound: Addon manifestWork is not found",
	} {
		require.Equal(t, want, said(state(t, mode)), mode)
	}
}

func TestAvailableOfWorkloads(t *testing.T) {
	const fine = "Customized; True ProbeAvailable: web add-on is available."
	web, node := "deployments web Replicas=2 ReadyReplicas=1", "daemonsets node DesiredNumberScheduled=3 NumberReady=3"
	for name, tc := range map[string]struct {
		mode  addonkit.HealthMode
		works []*workv1.ManifestWork
		want  string
	}{
		"nobody has answered": {
			addonkit.HealthDeployments,
			[]*workv1.ManifestWork{work(""), work(yes)},
			"Customized; Unknown WorkNotApplied: Addon manifestWork is not applied yet",
		},
		"it cannot be applied": {
			addonkit.HealthDeployments,
			[]*workv1.ManifestWork{work(no), work("")},
			"Customized; False WorkNotApplied: Addon manifestWork is not applied yet",
		},
		"nothing is known": {
			addonkit.HealthDeployments,
			[]*workv1.ManifestWork{work(yes)},
			"Customized; Unknown NoProbeResult: Probe results are not returned: deployments.apps n/web",
		},
		"a replica is ready": {addonkit.HealthDeployments, []*workv1.ManifestWork{work(yes, web)}, fine},
		"none is ready": {
			addonkit.HealthDeployments,
			[]*workv1.ManifestWork{work(yes, "deployments web Replicas=2")},
			"Customized; False ProbeUnavailable: Probe addon unavailable with err deployments.apps n/web has no ready replica of 2",
		},
		"none is wanted there": {
			addonkit.HealthDeployments,
			[]*workv1.ManifestWork{work(yes, "deployments web Replicas=0")},
			fine,
		},
		"a DaemonSet is no Deployment": {
			addonkit.HealthDeployments,
			[]*workv1.ManifestWork{work(yes, web, "daemonsets node DesiredNumberScheduled=3")},
			fine,
		},
		"half an answer is none": {
			addonkit.HealthWorkloads,
			[]*workv1.ManifestWork{work(yes, web)},
			"Customized; Unknown NoProbeResult: Probe results are not returned: daemonsets.apps n/node",
		},
		"both, of two works": {addonkit.HealthWorkloads, []*workv1.ManifestWork{work(yes, web), work(yes, node)}, fine},
		"a DaemonSet is not on every node": {
			addonkit.HealthWorkloads,
			[]*workv1.ManifestWork{work(yes, web, "daemonsets node DesiredNumberScheduled=3 NumberReady=2")},
			"Customized; False ProbeUnavailable: Probe addon unavailable with err daemonsets.apps n/node has 2 ready pods of 3",
		},
		"an answer about something else counts not": {
			addonkit.HealthDeployments,
			[]*workv1.ManifestWork{work(yes, "deployments other Replicas=1 ReadyReplicas=1")},
			"Customized; Unknown NoProbeResult: Probe results are not returned: deployments.apps n/web",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(t, tc.mode)
			s.Works = tc.works
			require.Equal(t, tc.want, said(s))
		})
	}
}

// TestWithoutProbesItIsAvailableWhenItsManifestsAreApplied: as they are wanted now, and
// the message says what was checked.
func TestWithoutProbesItIsAvailableWhenItsManifestsAreApplied(t *testing.T) {
	const only = " Only the applied manifests were checked: there is nothing to probe."
	stale := func(generation, observed int64) *workv1.ManifestWork {
		w := work(yes)
		w.Generation, w.Status.Conditions[0].ObservedGeneration = generation, observed
		return w
	}
	for mode, fine := range map[addonkit.HealthMode]string{
		addonkit.HealthDeployments: "Customized; True ProbeAvailable: web add-on is available." + only,
		addonkit.HealthWork:        "Customized; True WorkApplied: Addon manifestWork is applied" + only,
	} {
		for name, tc := range map[string]struct {
			works []*workv1.ManifestWork
			want  string
		}{
			"no work": {nil, "Customized; Unknown WorkNotFound: Addon manifestWork is not found"},
			"nobody has answered": {
				[]*workv1.ManifestWork{work("")},
				"Customized; Unknown WorkNotApplied: Addon manifestWork is not applied yet",
			},
			"one cannot be applied": {
				[]*workv1.ManifestWork{work(yes), work(no)},
				"Customized; False WorkNotApplied: Addon manifestWork is not applied yet",
			},
			"as it was before": {
				[]*workv1.ManifestWork{stale(3, 2)},
				"Customized; Unknown WorkNotApplied: Addon manifestWork is not applied yet",
			},
			"as it is now":                  {[]*workv1.ManifestWork{stale(3, 3)}, fine},
			"an agent tells no generations": {[]*workv1.ManifestWork{stale(3, 0)}, fine},
		} {
			t.Run(string(mode)+" "+name, func(t *testing.T) {
				s := state(t, mode)
				s.Manifests, s.Works = s.Manifests[1:2], tc.works
				require.Equal(t, tc.want, said(s))
			})
		}
		s := state(t, mode)
		s.Manifests = nil
		require.Equal(t, fine, said(s), "it has no manifests, and needs no work")
	}
}

func TestProbesOfAnAuthor(t *testing.T) {
	s := state(t, addonkit.HealthWork)
	s.Health.Probes = []addonkit.Probe{{Resource: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "*", Name: "w*b"}}}
	s.Works = []*workv1.ManifestWork{work(yes, "deployments web Replicas=7", "deployments wob Replicas=1", "deployments other Replicas=2")}
	require.Equal(t, "Customized; True ProbeAvailable: web add-on is available.", said(s), "without a check any answer is good")
	var seen []string
	s.Health.Check = func(results []addonkit.Result, i addonkit.Instance) error {
		for _, r := range results {
			seen = append(seen, fmt.Sprint(i.AddOn.Name, " ", r.Resource.Name, " ", *r.Feedback.Values[0].FieldValue.Integer))
		}
		return errors.New("seven is too many")
	}
	require.Equal(t, "Customized; False ProbeUnavailable: Probe addon unavailable with err seven is too many", said(s))
	require.Equal(t, []string{"web web 7", "web wob 1"}, seen)
	s.Works = nil
	require.Contains(t, said(s), "WorkNotFound")
}

func TestWhenNothingIsSaid(t *testing.T) {
	s := state(t, addonkit.HealthDeployments)
	s.AddOn.Status.Conditions = nil
	require.Equal(t, "Customized", said(s), "the manifests have not been inspected")
	for _, mode := range []addonkit.HealthMode{addonkit.HealthDeployments, addonkit.HealthWork} {
		s = state(t, mode)
		s.Cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionUnknown}}
		s.AddOn.Status.Conditions = append(s.AddOn.Status.Conditions, metav1.Condition{
			Type:    addonv1alpha1.ConditionAvailable,
			Status:  metav1.ConditionUnknown,
			Reason:  "ManagedClusterLeaseUpdateStopped",
			Message: "m",
		})
		require.Equal(t, "Customized; Unknown ManagedClusterLeaseUpdateStopped: m", said(s), "the hub speaks for a cluster that is lost")
	}
}

func TestTheConditionTellsItsGeneration(t *testing.T) {
	s := state(t, addonkit.HealthWork)
	s.Works = []*workv1.ManifestWork{work(yes)}
	into := s.AddOn.DeepCopy()
	Set(s, into)
	c := apimeta.FindStatusCondition(into.Status.Conditions, addonv1alpha1.ConditionAvailable)
	require.EqualValues(t, 3, c.ObservedGeneration)
	require.True(t, c.LastTransitionTime.Time.Equal(start))
}

func TestConfigs(t *testing.T) {
	known := []workv1.FeedbackRule{{Type: workv1.FeedbackRuleTypeWellKnownStatus}}
	web := workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "n", Name: "web"},
		FeedbackRules:      known,
	}
	node := workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "daemonsets", Namespace: "n", Name: "node"},
		FeedbackRules:      known,
	}
	s := state(t, "")
	require.Equal(t, []workv1.ManifestConfigOption{web}, Configs(addonkit.Health{Mode: addonkit.HealthDeployments}, s.Manifests))
	require.Equal(t, []workv1.ManifestConfigOption{web, node}, Configs(addonkit.Health{Mode: addonkit.HealthWorkloads}, s.Manifests))
	require.Empty(t, Configs(addonkit.Health{Mode: addonkit.HealthLease}, s.Manifests))
	require.Equal(
		t, []workv1.ManifestConfigOption{web},
		Configs(addonkit.Health{Mode: addonkit.HealthWork, Probes: []addonkit.Probe{{Resource: web.ResourceIdentifier, Rules: known}}}, nil),
	)
}
