// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// weatherSeed determines the weather and what users do in it. Every run takes the same, so that
// a change is not blamed for what it did not do; "make faults" takes another one each time.
var weatherSeed = flag.Uint64("weather-seed", 1, "seed of the weather (0: another one each time) around the process of a hub")

// A storm has gusts of changes, after each of which all must become as declared. There may be
// clustersInAStorm clusters at a time, besides one that stays.
const gusts, changesInAGust, clustersInAStorm = 3, 10, 6

// storm is a hub that decides and deploys while its line is disturbed and it is killed now and
// then.
type storm struct {
	*field
	fan    *fan
	random *rand.Rand
	// groups are the labels of the clusters that users have declared, value is what they deploy
	// to those of group a.
	groups map[string]string
	value  string
	// written counts changes.
	written int
}

// TestAHubInBadWeatherDecidesWhatIsDeclared looks at the API server, not at what the hub says:
// the process of the hub reaches it through a proxy that loses, cuts, delays and refuses.
func TestAHubInBadWeatherDecidesWhatIsDeclared(t *testing.T) {
	seed := cmp.Or(*weatherSeed, rand.Uint64())
	t.Logf("repeat this with: go test -run %s ./test/integration/hub -weather-seed=%d", t.Name(), seed)
	s := emptyHub(t)
	traffic, weather := &faults.Process{}, faults.NewWeather(seed)
	weather.Percent = 6
	s.installBehind(t, s.Front(t, "hub", traffic))
	s.awaitHub(t)
	st := newStorm(t, s, seed)
	weather.Over(traffic)
	for gust := range gusts {
		for range changesInAGust {
			st.change(t)
		}
		if gust%2 == 1 {
			require.NoError(t, syscall.Kill(hubPID(t, s), syscall.SIGKILL))
		}
		st.await(t)
	}
	traffic.Fair()
	t.Logf("the weather: %v", weather.Done())
	require.Greater(t, len(weather.Done()), 4, "the weather was fair")
	st.await(t)
	soon(t, func() bool { return traffic.Quiet(3 * time.Second) }, "the hub goes on writing")
}

// installBehind installs a hub that reaches the API server at another address.
func (s *scene) installBehind(t *testing.T, address string) {
	t.Helper()
	way, err := url.Parse(address)
	require.NoError(t, err)
	objects, err := hub.Objects(hub.Options{Image: image + ":" + tag, Version: tag, Layout: hub.LayoutCompact})
	require.NoError(t, err)
	for _, u := range objects {
		if u.GetKind() == "Deployment" {
			containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			require.NoError(t, err)
			first := containers[0].(map[string]any)
			env, _ := first["env"].([]any)
			first["env"] = append(env,
				map[string]any{"name": "KUBERNETES_SERVICE_HOST", "value": way.Hostname()},
				map[string]any{"name": "KUBERNETES_SERVICE_PORT", "value": way.Port()})
			require.NoError(t, unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers"))
		}
	}
	s.apply(t, objects)
}

// newStorm prepares a placement of the clusters of group a, with one that stays, and a replica
// set for them.
func newStorm(t *testing.T, s *scene, seed uint64) *storm {
	t.Helper()
	const name = "storm"
	_, err := s.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	st := &storm{
		field: &field{scene: s, namespace: name, set: name}, fan: &fan{scene: s, namespace: name},
		random: rand.New(rand.NewPCG(seed, 0)), groups: map[string]string{}, value: "0",
	}
	st.bind(t, name)
	st.place(t, "p", `{"predicates":[{"requiredClusterSelector":{"labelSelector":{"matchLabels":{"group":"a"}}}}]}`)
	st.fan.deploy(t, "rs", st.value, "", "p")
	st.enter(t, "storm-stays", "a")
	return st
}

// enter creates a cluster and accepts it.
func (st *storm) enter(t *testing.T, name, group string) {
	t.Helper()
	st.join(t, name, map[string]string{"group": group})
	settled(t, func() error { return patch(st.dyn, name, `{"spec":{"hubAcceptsClient":true}}`) })
	st.groups[name] = group
}

// change does what a user of the hub does.
func (st *storm) change(t *testing.T) {
	t.Helper()
	name := fmt.Sprintf("storm-%d", st.random.IntN(clustersInAStorm))
	group := []string{"a", "b"}[st.random.IntN(2)]
	st.written++
	_, there := st.groups[name]
	switch choice := st.random.IntN(4); {
	case choice == 0:
		st.value = fmt.Sprint(st.written)
		st.fan.deploy(t, "rs", st.value, "", "p")
	case !there:
		// The last cluster of that name may still be on its way out.
		soon(t, func() bool {
			_, err := st.dyn.Resource(clusters).Get(t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}, "%s does not go", name)
		st.enter(t, name, group)
	case choice == 1:
		settled(t, func() error { return st.dyn.Resource(clusters).Delete(t.Context(), name, metav1.DeleteOptions{}) })
		delete(st.groups, name)
	default:
		settled(t, func() error { return patch(st.dyn, name, fmt.Sprintf(`{"metadata":{"labels":{"group":%q}}}`, group)) })
		st.groups[name] = group
	}
}

// await waits until all is as declared.
func (st *storm) await(t *testing.T) {
	t.Helper()
	var wrong string
	soon(t, func() bool {
		wrong = st.amiss(t)
		return wrong == ""
	}, "it is not as declared: %s", &wrong)
}

// amiss says what is not as declared; empty for nothing.
func (st *storm) amiss(t *testing.T) string {
	t.Helper()
	var selected, deployed []string
	for _, name := range slices.Sorted(maps.Keys(st.groups)) {
		if st.groups[name] == "a" {
			selected, deployed = append(selected, name), append(deployed, name+"="+st.value)
		}
	}
	var decided []string
	for _, d := range st.objects(t, "p") {
		decided = append(decided, selectedIn(&d)...)
	}
	slices.Sort(decided)
	if !slices.Equal(decided, selected) {
		return fmt.Sprintf("decided are %v, declared are %v", decided, selected)
	}
	if works := st.fan.delivered(t, "rs"); !slices.Equal(works, deployed) {
		return fmt.Sprintf("deployed is %v, declared is %v", works, deployed)
	}
	roles, err := st.kube.RbacV1().ClusterRoles().List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	var may []string
	for i := range roles.Items {
		if name, of := strings.CutPrefix(roles.Items[i].Name, clusterv1.RolePrefixManagedCluster); of && strings.HasPrefix(name, "storm-") {
			may = append(may, name)
		}
	}
	if want := slices.Sorted(maps.Keys(st.groups)); !slices.Equal(may, want) {
		return fmt.Sprintf("the agents of %v have rights, the clusters are %v", may, want)
	}
	return ""
}
