// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// weatherSeed determines the weather and what users do in it. Every run takes the same, so that
// a change is not blamed for what it did not do; "make faults" takes another one each time.
var weatherSeed = flag.Uint64("weather-seed", 1, "seed of the weather (0: another one each time) around the process of an agent")

// storm is a cluster that joins, works and is changed while both lines of its agent are
// disturbed and the agent is killed now and then.
type storm struct {
	t      *testing.T
	h      *hub
	s      *spoke
	random *rand.Rand
	// want is what users have declared: the value of each work's object.
	want map[string]string
	// written counts the values.
	written int
}

// A storm has gusts of changes, after each of which all must become as declared. There may be
// worksInAStorm works at a time.
const gusts, changesInAGust, worksInAStorm = 6, 12, 8

// TestAnAgentInBadWeatherDoesWhatIsDeclared looks at both clusters, not at what the agent says:
// the process of the agent reaches them through proxies that lose, cut, delay and refuse.
func TestAnAgentInBadWeatherDoesWhatIsDeclared(t *testing.T) {
	t.Parallel()
	seed := cmp.Or(*weatherSeed, rand.Uint64())
	t.Logf("repeat this with: go test -run %s ./test/integration/agent -weather-seed=%d", t.Name(), seed)
	h, s := newHub(t), newSpoke(t)
	traffic, weather := &faults.Process{}, faults.NewWeather(seed)
	weather.Percent = 15
	s.way = s.Front(t, "cluster", traffic)
	endpoint := h.endpoint("hub")
	endpoint.Server = h.Front(t, "hub", traffic)
	bootstrap, err := endpoint.WithToken(h.As(t, "open-cluster-management", clusterv1.BootstrapServiceAccount).BearerToken)
	require.NoError(t, err)
	s.install(t, config.Options{ClusterName: "storm", BootstrapKubeconfig: bootstrap})
	weather.Over(traffic)
	agent := s.start(t)
	h.join(t, "storm")

	st := &storm{t: t, h: h, s: s, random: rand.New(rand.NewPCG(seed, 0)), want: map[string]string{}}
	for gust := range gusts {
		for range changesInAGust {
			st.change()
		}
		if gust%2 == 1 {
			agent.kill()
			agent = s.start(t)
		}
		await(t, func() bool { return st.amiss(t.Context()) == "" }, "in the storm: %s", func() any { return st.amiss(t.Context()) })
	}
	traffic.Fair()
	t.Logf("the weather: %v", weather.Done())
	require.Greater(t, len(weather.Done()), 4, "the weather was fair")
	await(t, func() bool { return traffic.Quiet(3 * time.Second) }, "the agent goes on writing")
	h.awaitCondition(t, "storm", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.True(t, agent.running())
}

// change does what a user of the hub does, or somebody on the cluster.
func (s *storm) change() {
	s.t.Helper()
	ctx, api := s.t.Context(), s.h.client.Resource(works).Namespace("storm")
	name := fmt.Sprintf("storm-%d", s.random.IntN(worksInAStorm))
	_, there := s.want[name]
	s.written++
	value := fmt.Sprint(s.written)
	switch {
	case !there:
		manifest := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":%q},"data":{"k":%q}}`, name, value)
		work := &unstructured.Unstructured{}
		require.NoError(s.t, work.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork",
			"metadata":{"name":%q},"spec":{"workload":{"manifests":[%s]}}}`, name, manifest)))
		// The last work of that name may still be on its way out.
		await(s.t, func() bool {
			_, err := api.Create(ctx, work, metav1.CreateOptions{})
			return err == nil
		}, "%s is not created", name)
		s.want[name] = value
	case s.random.IntN(4) == 0:
		require.NoError(s.t, api.Delete(ctx, name, metav1.DeleteOptions{}))
		delete(s.want, name)
	case s.random.IntN(3) == 0: // what is deleted on the cluster comes back
		err := s.s.client.Resource(configMaps).Namespace("default").Delete(ctx, name, metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			require.NoError(s.t, err)
		}
	default:
		_, err := api.Patch(ctx, name, types.JSONPatchType,
			fmt.Appendf(nil, `[{"op":"replace","path":"/spec/workload/manifests/0/data/k","value":%q}]`, value), metav1.PatchOptions{})
		require.NoError(s.t, err)
		s.want[name] = value
	}
}

// amiss says what on the two clusters is not as declared; empty for nothing.
func (s *storm) amiss(ctx context.Context) string {
	live, err := typed.List[workv1.ManifestWork](ctx, s.h.client, works, "storm", metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, work := range live {
		applied := apimeta.FindStatusCondition(work.Status.Conditions, workv1.ConditionApplied)
		if _, wanted := s.want[work.Name]; !wanted {
			return work.Name + " is still on the hub"
		}
		if applied == nil || applied.Status != metav1.ConditionTrue || applied.ObservedGeneration != work.Generation {
			return fmt.Sprintf("%s of generation %d says %v", work.Name, work.Generation, applied)
		}
	}
	objects, err := s.s.client.Resource(configMaps).Namespace("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	found := map[string]string{}
	for _, o := range objects.Items {
		if strings.HasPrefix(o.GetName(), "storm-") {
			found[o.GetName()], _, _ = unstructured.NestedString(o.Object, "data", "k")
		}
	}
	records, err := s.s.client.Resource(workv1.GroupVersion.WithResource(workv1.ResourceAppliedManifestWorks)).List(ctx, metav1.ListOptions{})
	switch {
	case err != nil:
		return err.Error()
	case len(live) != len(s.want), len(records.Items) != len(s.want):
		return fmt.Sprintf("%d works and %d records for %d that are declared", len(live), len(records.Items), len(s.want))
	case fmt.Sprint(found) != fmt.Sprint(s.want):
		return fmt.Sprintf("the objects are %v, declared are %v", found, s.want)
	}
	return ""
}
