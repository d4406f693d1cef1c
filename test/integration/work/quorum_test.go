// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

// voting is a cluster whose etcd has three members.
type voting struct{ *harness.Cluster }

// writable reports whether a write succeeds within three seconds.
func (v voting) writable(t *testing.T) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := v.Dynamic(t).Resource(configMaps).Namespace("kube-system").Patch(ctx, "extension-apiserver-authentication", types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/written":%q}}}`, time.Now().String()), metav1.PatchOptions{})
	return err == nil
}

// lose ends two members of etcd and waits until nothing can be written.
func (v voting) lose(t *testing.T) {
	t.Helper()
	for _, n := range []int{2, 3} {
		require.NoError(t, v.Playground.Kill(playground.Member(n)))
	}
	wait(t, func() bool { return !v.writable(t) }, "one of three members can write")
}

// regain starts one of the two again, and waits until the majority writes.
func (v voting) regain(t *testing.T) {
	t.Helper()
	require.NoError(t, v.Playground.Restart(t.Context(), playground.Member(2)))
	v.steady(t)
}

// whole starts the third one too.
func (v voting) whole(t *testing.T) {
	t.Helper()
	require.NoError(t, v.Playground.Restart(t.Context(), playground.Member(3)))
	v.steady(t)
}

// steady waits until a second of writes succeeds: members that have just begun may still vote, and
// meanwhile requests fail.
func (v voting) steady(t *testing.T) {
	t.Helper()
	since := time.Now()
	wait(t, func() bool {
		if !v.writable(t) {
			since = time.Now()
		}
		return time.Since(since) > time.Second
	}, "most members cannot write")
}

// An etcd without quorum serves what its API server has in memory, ends watches, and takes no
// write. Works stay as they are meanwhile, and the agent goes on when the majority is back.
func TestAnEtcdWithoutQuorumRemovesNothing(t *testing.T) {
	t.Parallel()
	// Without quorum, a request hangs until the API server gives it up.
	v := voting{harness.ControlPlane(t, "voting", harness.EtcdMembers(3), harness.APIServer("--request-timeout=10s"))}
	t.Run("on the hub", func(t *testing.T) { hubWithoutQuorum(t, v) })
	v.whole(t)
	t.Run("on the cluster", func(t *testing.T) { clusterWithoutQuorum(t, v) })
}

func hubWithoutQuorum(t *testing.T, v voting) {
	s := sceneOn(t, v.Cluster, harness.Shared(t, "spoke"))
	s.config.Grace = time.Hour
	s.start()
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")})
	s.ready("web")
	uid := s.get(configMaps, "one").GetUID()
	s.rests()

	v.lose(t)
	s.patch(configMaps, "one", `{"data":{"a":"theirs"}}`)
	s.eventually(func() bool { return s.data("one", "a") == "1" }, "drift is not repaired")
	s.sent.Take()
	asked := 0
	s.eventually(func() bool {
		for _, r := range s.sent.Take() {
			if strings.HasPrefix(r, "hub GET ") && strings.HasSuffix(r, "/manifestworks") {
				asked++
			}
		}
		return asked >= 2
	}, "the hub is not asked again")
	s.clock.forward(2 * time.Hour)
	require.Nil(t, s.applied("web").Status.EvictionStartTime, "what cannot be read is not missing")

	v.regain(t)
	s.update("web", s.manifests(configMap("one", "a", "2"), configMap("two", "a", "1")))
	s.ready("web")
	require.Equal(t, "2", s.data("one", "a"))
	require.Equal(t, uid, s.get(configMaps, "one").GetUID())
	require.Nil(t, s.applied("web").Status.EvictionStartTime)
	s.rests()
}

func clusterWithoutQuorum(t *testing.T, v voting) {
	s := sceneOn(t, harness.Shared(t, "hub"), v.Cluster)
	s.start()
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")})
	s.ready("web")
	uid := s.get(configMaps, "one").GetUID()
	s.rests()

	v.lose(t)
	changed := s.update("web", s.manifests(configMap("one", "a", "2")))
	s.sent.Take()
	tried := 0
	s.eventually(func() bool {
		tried += len(writes(s.sent.Take(), "spoke"))
		return tried >= 2
	}, "the change is not tried")
	for _, c := range s.work("web").Status.Conditions {
		if c.Type == workv1.ConditionApplied && c.Status == metav1.ConditionTrue {
			require.Less(t, c.ObservedGeneration, changed.Generation, "it says that it has applied what nobody could write")
		}
	}

	v.regain(t)
	s.ready("web")
	require.Equal(t, "2", s.data("one", "a"))
	require.Equal(t, uid, s.get(configMaps, "one").GetUID())
	s.eventually(func() bool { return s.data("two", "a") == "-" }, "what is no longer declared stays")
	s.rests()
}
