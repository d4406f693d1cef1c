// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// objects returns n objects as they are recorded.
func objects(n int) []workv1.AppliedManifestResourceMeta {
	var out []workv1.AppliedManifestResourceMeta
	for i := range n {
		out = append(out, workv1.AppliedManifestResourceMeta{Version: "v1", Resource: "configmaps", Namespace: "ns", Name: fmt.Sprintf("object-%d", i)})
	}
	return out
}

func intending(annotation string, status ...workv1.AppliedManifestResourceMeta) *workv1.AppliedManifestWork {
	return readIntent(&workv1.AppliedManifestWork{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{workv1.AnnotationIntent: annotation}},
		Status:     workv1.AppliedManifestWorkStatus{AppliedResources: status},
	})
}

func TestTheListOfTheCreationCountsUntilTheStatusHasOne(t *testing.T) {
	text, err := intentOf(objects(2))
	require.NoError(t, err)

	fresh := intending(text)
	require.Equal(t, objects(2), fresh.Status.AppliedResources)
	require.True(t, intends(fresh))
	require.True(t, OnlyIntends(fresh))
	require.Equal(t, fresh, readIntent(fresh.DeepCopy()), "a record is read twice where it is kept twice")

	written := intending(text, objects(1)...)
	require.Equal(t, objects(1), written.Status.AppliedResources)
	require.True(t, intends(written), "the annotation is still to be removed")
	require.False(t, OnlyIntends(written))

	spoilt := intending(`{"no":"list"}`)
	require.Empty(t, spoilt.Status.AppliedResources)
	require.False(t, OnlyIntends(spoilt))

	none := readIntent(&workv1.AppliedManifestWork{})
	require.False(t, intends(none))
}

func TestALongListIsLeftToTheStatus(t *testing.T) {
	for n, fits := range map[int]bool{0: false, 500: true, 2000: false} {
		text, err := intentOf(objects(n))
		require.NoError(t, err)
		require.Equal(t, fits, text != "", "%d objects in %d bytes", n, len(text))
	}
}
