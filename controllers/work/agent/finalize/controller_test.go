// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

func TestARecordThatWasTakenOverFromLeavesItsObjects(t *testing.T) {
	object := workv1.AppliedManifestResourceMeta{Version: "v1", Resource: "configmaps", Namespace: "default", Name: "web", UID: "u1"}
	successor := &workv1.AppliedManifestWork{}
	successor.Status.AppliedResources = []workv1.AppliedManifestResourceMeta{object}
	s := State{Applied: &workv1.AppliedManifestWork{}, Successor: successor}
	require.True(t, New(Config{}).removal(s, object).Keep)
	another := object
	another.UID = "u2"
	require.False(t, New(Config{}).removal(s, another).Keep)

	successor.UID = "heir"
	require.Empty(t, New(Config{}).removal(s, another).Heir.UID)
	require.Equal(t, successor.UID, New(Config{}).removal(s, object).Heir.UID, "the hub lost the work")
	s.Moved = &workv1.ManifestWork{}
	require.Equal(t, successor.UID, New(Config{}).removal(s, object).Heir.UID)
	s.Moved.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	require.Empty(t, New(Config{}).removal(s, object).Heir.UID, "it is to stay without owner")
	s.Successor = nil
	require.False(t, New(Config{}).removal(s, object).Keep)
}

func TestOnlyTheHubItselfSaysThatAWorkIsGone(t *testing.T) {
	resource := schema.GroupResource{Group: "work.open-cluster-management.io", Resource: "manifestworks"}
	require.True(t, missing(fmt.Errorf("reading: %w", apierrors.NewNotFound(resource, "web"))))
	// This is what client-go makes of the 404 of a server without the API, or of a proxy.
	require.False(t, missing(apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "404 page not found", 0, true)))
	require.False(t, missing(apierrors.NewForbidden(resource, "web", nil)))
	require.False(t, missing(nil))
}
