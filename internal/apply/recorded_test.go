// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

func TestARecordListsWhatItWasCreatedWithUntilItsStatusDoes(t *testing.T) {
	one := workv1.AppliedManifestResourceMeta{
		Version: "v1", Resource: "configmaps", Namespace: "default", Name: "one",
	}
	record := &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		workv1.AnnotationIntent: `[{"version":"v1","resource":"configmaps","namespace":"default","name":"one"}]`,
	}}}
	require.Equal(t, []workv1.AppliedManifestResourceMeta{one}, Recorded(record))
	one.UID = "u"
	record.Status.AppliedResources = []workv1.AppliedManifestResourceMeta{one}
	require.EqualValues(t, "u", Recorded(record)[0].UID)

	record.Status.AppliedResources, record.Annotations[workv1.AnnotationIntent] = nil, `{"no":"list"}`
	require.Empty(t, Recorded(record))
	require.Empty(t, Recorded(&workv1.AppliedManifestWork{}))
}
