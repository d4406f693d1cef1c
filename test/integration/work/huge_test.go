// SPDX-License-Identifier: Apache-2.0

package work

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// maxSpec is the largest spec of a work that the webhook accepts, in bytes.
const maxSpec = 500 << 10

func TestTheStatusOfAHugeWorkCanAlwaysBeWritten(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.start()
	var good, all []string
	for i := range 20 {
		good = append(good, configMap(fmt.Sprint("good-", i), "k", "v"))
	}
	all = append(all, good...)
	for size := 0; ; {
		// It has no name, so that it costs no request.
		bad := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n"},"data":{"k":"%05d"}}`, len(all))
		if size += len(bad); size > maxSpec {
			break
		}
		all = append(all, bad)
	}
	require.Greater(t, len(all), 5000)
	s.create("huge", all)
	s.told("huge")
	work := s.settled("huge", workv1.ConditionApplied, metav1.ConditionFalse)
	require.True(t, status.LeftOut(work.Status))
	raw, err := json.Marshal(work)
	require.NoError(t, err)
	require.Less(t, len(raw), 1_500_000, "etcd takes no more")
	told := len(work.Status.ResourceStatus.Manifests)
	applied := apimeta.FindStatusCondition(work.Status.Conditions, workv1.ConditionApplied)
	require.Contains(t, applied.Message, fmt.Sprintf("%d of %d manifests are left out of the status", len(all)-told, len(all)))
	require.Greater(t, told, 500, "what fits is reported")
	require.Equal(t, "v", s.data("good-19", "k"), "the good ones are applied")

	s.sent.Take()
	s.update("huge", s.manifests(good...))
	s.told("huge")
	work = s.ready("huge")
	require.False(t, status.LeftOut(work.Status))
	require.Len(t, work.Status.ResourceStatus.Manifests, len(good))
}

// TestLargeObjectsAreReadAgainWhereThereIsNoRoom has live objects with more bytes than a
// pass keeps.
func TestLargeObjectsAreReadAgainWhereThereIsNoRoom(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	large := strings.Repeat("x", 900_000)
	var declared []string
	for i := range 12 {
		name := fmt.Sprint("large-", i)
		declared = append(declared, configMap(name))
		apply(
			t, s.spoke, configMaps, s.namespace,
			fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"a":"%d","x":%q}}`, name, i, large),
		)
	}
	s.create("web", declared, strategy("*", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}),
		withFeedback("configmaps", "*", "*", jsonPaths("a", ".data.a")))
	s.start()
	s.told("web")
	s.ready("web")
	for i := range declared {
		s.awaitValues("web", i, fmt.Sprint("a=", i))
	}
}
