// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAKindThatIsNotServedIsNotToldAsMissingRights(t *testing.T) {
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	gone := unwatched(widgets, apierrors.NewNotFound(widgets.GroupResource(), ""))
	require.Equal(t, "KindNotServed", gone.Reason)
	require.Contains(t, gone.Message, "widgets.example.com of version v1 is not served")
	denied := unwatched(widgets, apierrors.NewForbidden(widgets.GroupResource(), "", nil))
	require.Equal(t, "WatchForbidden", denied.Reason)
	require.Contains(t, denied.Message, "grant it list and watch")
}
