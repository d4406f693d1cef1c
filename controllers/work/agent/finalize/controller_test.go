// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOnlyTheHubItselfSaysThatAWorkIsGone(t *testing.T) {
	resource := schema.GroupResource{Group: "work.open-cluster-management.io", Resource: "manifestworks"}
	require.True(t, missing(fmt.Errorf("reading: %w", apierrors.NewNotFound(resource, "web"))))
	// What client-go makes of the 404 of a server without the API, or of a proxy.
	require.False(t, missing(apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "404 page not found", 0, true)))
	require.False(t, missing(apierrors.NewForbidden(resource, "web", nil)))
	require.False(t, missing(nil))
}
