// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// events returns the events of all passes until there is nothing left to write.
func (f *fleet) events() string {
	f.t.Helper()
	f.sent = nil
	f.pass()
	return strings.Join(f.sent, "\n")
}

func TestEventsOfARollout(t *testing.T) {
	f := newFleet(
		t, `{"type":"Progressive","progressive":{"maxConcurrency":2,"progressDeadline":"5s","maxFailures":1}}`,
		"p: c1 c2 c3 c4",
	)
	const d = "addondeploymentconfigs ns/d "
	require.Equal(t, "Normal RolloutStarted: Rolling out "+d+"(one) to 4 clusters of placement default/p", f.events())
	require.Empty(t, f.events(), "once")
	f.deploy(false, "c1")
	f.deploy(true, "c2")
	require.Empty(t, f.events(), "single clusters cause no event")
	f.deploy(true, "c3")
	f.state.Now = f.state.Now.Add(5 * time.Second)
	require.Equal(
		t,
		"Warning RolloutStuck: 1 of 4 clusters of placement default/p ran out of time: c1; c1: progressing... work is not ready",
		f.events(),
	)
	require.Empty(t, f.events())
	f.state.Now = f.state.Now.Add(5 * time.Second)
	require.Equal(t, "Warning RolloutStuck: 2 of 4 clusters of placement default/p ran out of time: c1, c4; c1: progressing... work is not ready; "+
		"these are more than maxFailures allows, so no further cluster is started", f.events())
	f.deploy(true, "c1", "c4")
	require.Equal(t, "Normal RolledOut: 4 clusters of placement default/p have "+d+"(one)", f.events())

	// Another cluster gets what all others have: that is no rollout.
	p := &f.state.Placements[0]
	p.Clusters, p.Groups[0].Clusters = append(p.Clusters, "c5"), append(p.Groups[0].Clusters, "c5")
	c5 := f.state.Clusters["c1"]
	f.state.Clusters["c5"] = c5
	f.install("c5")
	require.Empty(t, f.events())
	f.deploy(true, "c5")
	require.Empty(t, f.events())
	require.Contains(t, f.progression(0), "configured addons 5/5 completed")

	f.write("d", "0123456789abcdef")
	require.Equal(t, "Normal RolloutStarted: Rolling out "+d+"(01234567) to 5 clusters of placement default/p", f.events())
	f.write("d", "")
	require.Equal(
		t, "Normal RolloutStarted: Rolling out "+d+"(not found) to 5 clusters of placement default/p", f.events(),
	)
}

func TestEventsOfPlacementsThatCannotBeUsed(t *testing.T) {
	f := newFleet(t, "", "gone: c1", "bad: c2", "silent: c3")
	f.state.Placements[0].Found, f.state.Placements[0].Clusters = false, nil
	f.state.Placements[1].Invalid = errBad
	f.state.Placements[2].Decided = false
	require.Equal(
		t,
		"Warning RolloutStuck: There is no placement default/gone; create it, or remove it from spec.installStrategy.placements.\n"+
			"Warning RolloutStuck: Placement default/bad cannot be used: groups are bad.",
		f.events(),
	)
	require.Empty(t, f.events())
	f.state.Placements[0].Found, f.state.Placements[0].Clusters = true, []string{"c1"}
	require.Contains(
		t, f.events(),
		"Normal RolloutStarted: Rolling out addondeploymentconfigs ns/d (one) to 1 cluster of placement default/gone",
	)
}

func TestEventsAreBounded(t *testing.T) {
	var placements []string
	for i := range 3 * maxEvents {
		placements = append(placements, fmt.Sprintf("p%d: c%d", i, i))
	}
	f := newFleet(t, "", placements...)
	for i := range 20 {
		f.state.Placements[0].Configs = append(f.state.Placements[0].Configs, adc(fmt.Sprintf("config%d", i)))
	}
	require.Len(t, strings.Split(f.events(), "\n"), maxEvents)
	require.Contains(
		t, f.sent[0],
		"config3 (not found), addondeploymentconfigs ns/config4 (not found) and 15 more to 1 cluster of placement default/p0",
	)
}

func TestAnAddOnWithoutConfigurationsRollsNothingOut(t *testing.T) {
	f := newFleet(t, "", "p: c1")
	f.state.AddOn.Spec.SupportedConfigs = nil
	require.Empty(t, f.events())
	f.deploy(true, "c1")
	require.Empty(t, f.events())
	require.Contains(t, f.progression(0), "completed")
	require.Nil(t, f.state.AddOn.Status.InstallProgressions[0].ConfigReferences)
	f.state.AddOn.Annotations = map[string]string{addonv1alpha1.AnnotationLifecycle: addonv1alpha1.LifecycleSelf}
	require.Empty(t, f.events())
}
