// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
)

// ocm runs the plugin as a user of the hub would, and returns its exit code and all its
// output.
func (s *scene) ocm(t *testing.T, line string) (int, string) {
	t.Helper()
	var said bytes.Buffer
	streams := app.Streams{In: strings.NewReader(""), Out: &said, Err: &said, Clock: clock.RealClock{}, Getenv: func(string) string { return "" }}
	code := app.Run(t.Context(), streams, append(append([]string{"kubectl-ocm"}, strings.Fields(line)...), "--kubeconfig", s.Kubeconfig))
	t.Logf("kubectl ocm %s\nexit %d\n%s", line, code, said.String())
	return code, said.String()
}

// TestAStoppedRolloutIsResumedByOneCommand lets two clusters time out, where none may, so that
// the third one is updated only after the command. The deadline is set when both have begun, so
// that neither runs out of time before the other has its turn.
func TestAStoppedRolloutIsResumedByOneCommand(t *testing.T) {
	f := newAddOnFan(t, "resumed", 3)
	c := f.clusters
	one := f.settings(t, "one")
	f.place(t, "p", c...)
	strategy := func(deadline string) string {
		return `{"type":"Placements","placements":[{"namespace":"resumed","name":"p",
			"rolloutStrategy":{"type":"Progressive","progressive":{"maxConcurrency":2,"progressDeadline":"` + deadline + `"}}}]}`
	}
	f.offer(t, strategy("None"))
	f.awaitGiven(t, one, one, "-")
	_, err := f.dyn.Resource(clusterAddOns).Patch(
		t.Context(), "resumed", types.MergePatchType, []byte(`{"spec":{"installStrategy":`+strategy("1s")+`}}`), metav1.PatchOptions{},
	)
	require.NoError(t, err)
	const stopped = "selected clusters 3. configured addons 0/3 progressing..., 0 failed 2 timeout." + addonv1alpha1.MessageRolloutStopped
	f.awaitProgress(t, stopped)
	f.awaitGiven(t, one, one, "-")

	code, said := f.ocm(t, "addon resume resumed --dry-run")
	require.Zero(t, code)
	require.Contains(t, said, addonv1alpha1.AnnotationResumeRollout)
	f.awaitProgress(t, stopped)

	code, said = f.ocm(t, "addon resume resumed")
	require.Zero(t, code)
	require.Contains(t, said, "clustermanagementaddon.addon.open-cluster-management.io/resumed configured")
	f.awaitGiven(t, one, one, one)
	f.awaitEvent(t, "Normal RolloutResumed: The rollout of placement resumed/p continues without the clusters that timed out: "+c[0]+", "+c[1])
	f.deployAddOn(t, c[2])
	f.awaitGiven(t, one, one, one+"*")
	f.awaitProgress(t, "selected clusters 3. configured addons 1/3 progressing..., 0 failed 2 timeout.")

	code, said = f.ocm(t, "addon resume resumed")
	require.Zero(t, code)
	require.Contains(t, said, "there is nothing to resume: no rollout of resumed has stopped")
	require.Contains(t, said, "/resumed unchanged")
	for _, cluster := range c[:2] {
		f.deployAddOn(t, cluster)
	}
	f.awaitProgress(t, "selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout.")
}
