// SPDX-License-Identifier: Apache-2.0

package addonhealth

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func addOn(mode addonv1alpha1.HealthCheckMode, hosting string) *addonv1alpha1.ManagedClusterAddOn {
	a := &addonv1alpha1.ManagedClusterAddOn{}
	a.Name, a.Status.HealthCheck.Mode = "web", mode
	a.Annotations = map[string]string{addonv1alpha1.AnnotationHostingClusterName: hosting}
	return a
}

func TestDecide(t *testing.T) {
	const minute = time.Minute
	beat := func(renewed, arrived time.Duration, first bool) *Beat {
		return &Beat{Renewed: now.Add(-renewed), Arrived: now.Add(-arrived), First: first}
	}
	for name, tc := range map[string]struct {
		state   State
		want    string
		requeue time.Duration
	}{
		"no lease": {
			State{Known: true},
			"Unknown ManagedClusterAddOnLeaseNotFound The status of web add-on is unknown.",
			0,
		},
		"not known yet": {State{}, "", 0},
		"renewed a minute ago": {
			State{Known: true, Beat: beat(minute, minute, false)},
			"True ManagedClusterAddOnLeaseUpdated web add-on is available.",
			4 * minute,
		},
		"renewed 300 s ago": {
			State{Known: true, Beat: beat(5*minute, 5*minute, false)},
			"False ManagedClusterAddOnLeaseUpdateStopped web add-on is not available.",
			0,
		},
		"renewed 299 s ago": {
			State{Known: true, Beat: beat(0, 299*time.Second, false)},
			"True ManagedClusterAddOnLeaseUpdated web add-on is available.",
			time.Second,
		},
		"a clock that is late": {
			State{Known: true, Beat: beat(time.Hour, minute, false)},
			"True ManagedClusterAddOnLeaseUpdated web add-on is available.",
			4 * minute,
		},
		"a clock that is early": {
			State{Known: true, Beat: beat(-time.Hour, 5*minute, false)},
			"False ManagedClusterAddOnLeaseUpdateStopped web add-on is not available.",
			0,
		},
		"first sight of a fresh one": {
			State{Known: true, Beat: beat(minute, 0, true)},
			"True ManagedClusterAddOnLeaseUpdated web add-on is available.",
			5 * minute,
		},
		"first sight of an old one": {
			State{Known: true, Beat: beat(301*time.Second, 0, true)},
			"False ManagedClusterAddOnLeaseUpdateStopped web add-on is not available.",
			0,
		},
		"never renewed": {
			State{Known: true, Beat: &Beat{Arrived: now, First: true}},
			"False ManagedClusterAddOnLeaseUpdateStopped web add-on is not available.",
			0,
		},
		"the hub considers the cluster lost": {State{Known: true, Lost: true, Beat: beat(0, 0, false)}, "", 0},
		"its own controller reports its health": {
			State{Known: true, AddOn: addOn(addonv1alpha1.HealthCheckModeCustomized, "")},
			"",
			0,
		},
		"a hosted one says where its lease is expected": {
			State{Known: true, Hosted: true, AddOn: addOn("", "m")},
			"Unknown ManagedClusterAddOnLeaseNotFound The status of web add-on is unknown. " +
				"It is hosted: its lease is expected on the agent's cluster, which must be m.",
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := tc.state
			s.Now = now
			if s.AddOn == nil {
				s.AddOn = addOn(addonv1alpha1.HealthCheckModeLease, "")
			}
			p := Decide(s)
			got := ""
			if p.Object != nil {
				c := apimeta.FindStatusCondition(
					p.Object.(*addonv1alpha1.ManagedClusterAddOn).Status.Conditions, addonv1alpha1.ConditionAvailable,
				)
				got = string(c.Status) + " " + c.Reason + " " + c.Message
			}
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.requeue, p.RequeueAfter)
			require.Empty(t, s.AddOn.Status.Conditions, "the input is not modified")
		})
	}
}

func TestArrivals(t *testing.T) {
	sight := func(renewed time.Duration) watch.Sight[time.Time] {
		return watch.Sight[time.Time]{Known: true, Found: true, Item: now.Add(renewed)}
	}
	var p pulse
	p.recordSight(watch.Sight[time.Time]{}, now)
	require.Nil(t, p.beat)
	p.recordSight(sight(0), now)
	require.Equal(t, &Beat{Renewed: now, Arrived: now, First: true}, p.beat)
	p.recordSight(sight(0), now.Add(time.Minute))
	require.Equal(t, now, p.beat.Arrived, "seeing the same renewTime again is not a renewal")
	p.recordSight(watch.Sight[time.Time]{}, now.Add(time.Minute))
	require.NotNil(t, p.beat, "the last renewal is kept while the API server does not answer")
	p.recordSight(sight(-time.Hour), now.Add(2*time.Minute))
	require.Equal(t, &Beat{Renewed: now.Add(-time.Hour), Arrived: now.Add(2 * time.Minute)}, p.beat)
	p.recordSight(watch.Sight[time.Time]{Known: true}, now)
	require.Nil(t, p.beat)
}

// FuzzRenewTime checks that whatever a lease contains is parsed, or counts as never renewed.
func FuzzRenewTime(f *testing.F) {
	for _, seed := range []string{
		"", "now", "2026-01-01T12:00:00.000000Z", "2026-01-01T12:00:00+14:00", "9999-99-99T00:00:00Z",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"renewTime": text}}}
		got, ok := renewTime(u)
		require.True(t, ok)
		if !got.IsZero() {
			want, err := time.Parse(time.RFC3339Nano, text)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		p := pulse{}
		p.recordSight(watch.Sight[time.Time]{Known: true, Found: true, Item: got}, now)
		Decide(State{Now: now, AddOn: addOn("", ""), Known: true, Beat: p.beat})
	})
}
