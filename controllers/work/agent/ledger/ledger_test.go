// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

func work(name string, age int, manifests ...string) *workv1.ManifestWork {
	w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: "u", ResourceVersion: "1", CreationTimestamp: metav1.Unix(int64(1000-age), 0),
	}}
	for _, m := range manifests {
		var entry workv1.Manifest
		entry.Raw = []byte(m)
		w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, entry)
	}
	return w
}

func manifestOf(name, content string) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":%q,"namespace":"n"},"x":%q}`, name, content)
}

func TestTheOldestClaimHolds(t *testing.T) {
	var woken []string
	c := newClaims(func(work string) { woken = append(woken, work) })
	take := func() string {
		slices.Sort(woken)
		out := strings.Join(woken, " ")
		woken = nil
		return out
	}
	object := Object{"apps", "Deployment", "n", "a"}
	rival := func(work string) string {
		rivals := c.Rivals(work, object)
		if len(rivals) == 0 {
			return ""
		}
		return rivals[0].Work
	}
	c.Set(work("young", 1, manifestOf("a", "1")))
	require.Empty(t, take())
	require.Empty(t, rival("young"))
	c.Set(work("old", 9, manifestOf("a", "2"), manifestOf("b", "1"), "no json", `{"kind":"X"}`, `{"apiVersion":"a/b/c","kind":"X","metadata":{"name":"n"}}`))
	require.Equal(t, "young", take())
	require.Equal(t, "old", rival("young"))
	require.Empty(t, rival("old"))
	epoch := c.Epoch("young")
	c.Set(work("old", 9, manifestOf("a", "2")))
	require.Empty(t, take(), "the same claim again wakes no work")
	require.Equal(t, epoch, c.Epoch("young"))
	c.Set(work("twin", 5, manifestOf("a", "2")))
	require.Equal(t, "old young", take())
	require.Empty(t, rival("twin"), "the same content is no rivalry")
	require.Equal(t, "old", rival("young"))
	c.Set(work("old", 9, manifestOf("a", "1")))
	require.Equal(t, "twin young", take())
	require.Greater(t, c.Epoch("young"), epoch)
	require.Equal(t, "old", rival("twin"))
	require.Equal(t, "twin", rival("young"), "whoever is older and differs comes first")
	c.Release("old")
	c.Release("twin")
	require.Empty(t, rival("young"))
	c.Release("young")
	require.Empty(t, c.single)
	require.Empty(t, c.shared)
	require.Empty(t, c.works)
	require.Empty(t, c.epochs)
}

func TestClaimsOfTheSameAgeGoByName(t *testing.T) {
	c := newClaims(func(string) {})
	c.Set(work("b", 1, manifestOf("a", "1")))
	strategy := work("a", 1, manifestOf("a", "2"))
	strategy.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{}, {
		UpdateStrategy: &workv1.UpdateStrategy{Type: "CreateOnly"},
	}}
	c.Set(strategy)
	rivals := c.Rivals("b", Object{"apps", "Deployment", "n", "a"})
	require.Len(t, rivals, 1)
	require.Equal(t, "a", rivals[0].Work)
	require.Len(t, rivals[0].Configs, 1, "only what picks a strategy is kept")
}

func TestAClaimThatOnlyChangesItsStrategyWakesTheOthers(t *testing.T) {
	var woken []string
	c := newClaims(func(work string) { woken = append(woken, work) })
	old := work("old", 9, manifestOf("a", "1"))
	c.Set(old)
	c.Set(work("young", 1, manifestOf("a", "2")))
	woken = nil
	old.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{UpdateStrategy: &workv1.UpdateStrategy{Type: "CreateOnly"}}}
	epoch := c.Epoch("young")
	c.Set(old)
	require.Equal(t, []string{"young"}, woken, "its rival writes no more")
	require.Greater(t, c.Epoch("young"), epoch)
	woken = nil
	c.Set(old)
	require.Empty(t, woken)
}

func TestEveryOlderClaimIsARival(t *testing.T) {
	c := newClaims(func(string) {})
	for age, name := range []string{"c", "b", "a"} {
		c.Set(work(name, age, manifestOf("x", name)))
	}
	rivals := c.Rivals("c", Object{"apps", "Deployment", "n", "x"})
	require.Len(t, rivals, 2)
	require.Equal(t, []string{"a", "b"}, []string{rivals[0].Work, rivals[1].Work})
}

func TestBodiesAreBoundedInBytes(t *testing.T) {
	one := newBodies(maxBodies)
	one.put(work("w10", 0))
	b := newBodies(10 * one.size)
	for i := range 20 {
		b.put(work(fmt.Sprintf("w%02d", i), 0))
	}
	require.LessOrEqual(t, b.size, b.limit)
	require.Len(t, b.items, 10)
	require.Nil(t, b.get("w09", "1"))
	require.NotNil(t, b.get("w10", "1"))
	b.put(work("w20", 0))
	require.NotNil(t, b.get("w10", "1"), "the most recently used work stays")
	require.Nil(t, b.get("w11", "1"))
	require.Nil(t, b.get("w20", "2"), "another version is another work")
	newer := work("w20", 0)
	newer.ResourceVersion = "5"
	b.put(newer)
	b.put(work("w20", 0))
	require.NotNil(t, b.get("w20", "5"), "an older version does not replace a newer one")
	newer.ResourceVersion = "6"
	b.put(withNoise(newer, b.limit))
	require.Nil(t, b.get("w20", "6"), "what would fill the cache alone is not kept")
	require.Nil(t, b.get("w20", "5"))
	for i := range 30 {
		b.drop(fmt.Sprintf("w%02d", i))
		b.drop(fmt.Sprintf("w%02d", i))
	}
	require.Zero(t, b.size)
	require.Empty(t, b.items)
	require.Zero(t, b.order.Len())
}

func TestABodyComesBackAsItWas(t *testing.T) {
	b := newBodies(maxBodies)
	in := work("w", 3, manifestOf("a", "<&>"), manifestOf("b", "2"))
	in.Labels = map[string]string{"l": "v"}
	in.Status.Conditions = []metav1.Condition{{Type: "Applied", LastTransitionTime: metav1.Unix(5, 0)}}
	// What comes from the API server was encoded once.
	raw, err := json.Marshal(in)
	require.NoError(t, err)
	in = &workv1.ManifestWork{}
	require.NoError(t, json.Unmarshal(raw, in))
	b.put(in)
	require.Equal(t, in, b.get("w", "1"))
	require.Less(t, len(b.items["w"].Value.(*body).text), len(raw))
}

// withNoise adds a manifest that does not compress.
func withNoise(w *workv1.ManifestWork, size int) *workv1.ManifestWork {
	noise := make([]byte, size)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(noise)
	var entry workv1.Manifest
	entry.Raw = fmt.Appendf(nil, "%q", base64.StdEncoding.EncodeToString(noise))
	w.Spec.Workload.Manifests = append(w.Spec.Workload.Manifests, entry)
	return w
}

func TestIdentityNamesAndReadsNames(t *testing.T) {
	i := Identity{HubHash: "abc", AgentID: "x"}
	require.Equal(t, "abc-web", i.Name("web"))
	name, ours := i.Work("abc-web")
	require.True(t, ours)
	require.Equal(t, "web", name)
	_, ours = i.Work("abcd-web")
	require.False(t, ours)
}

func TestAStatusHasOneSum(t *testing.T) {
	a := workv1.ManifestWorkStatus{Conditions: []metav1.Condition{{Type: "A", LastTransitionTime: metav1.NewTime(time.Unix(5, 0))}}}
	b := workv1.ManifestWorkStatus{Conditions: []metav1.Condition{{Type: "A", LastTransitionTime: metav1.NewTime(time.Unix(5, 500))}}}
	require.Equal(t, digest.Of(a), digest.Of(b), "the wire holds whole seconds")
	b.Conditions[0].Type = "B"
	require.NotEqual(t, digest.Of(a), digest.Of(b))
}
