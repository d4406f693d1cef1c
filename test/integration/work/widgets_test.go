// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// widgetDefinition returns a kind of the scene's own, and its definition.
func widgetDefinition(s *scene) (kind, definition string) {
	kind = "Widget" + s.config.HubHash[:8]
	plural := strings.ToLower(kind) + "s"
	s.t.Cleanup(func() {
		err := s.spoke.Resource(definitions).Delete(context.Background(), plural+".example.com", metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) {
			require.NoError(s.t, err)
		}
	})
	return kind, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[2]s.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"kind":%[1]q,"plural":%[2]q,"singular":%[3]q,"listKind":"%[1]sList"},
		"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}}}]}}`,
		kind, plural, strings.ToLower(kind))
}

func definitionsOf(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: strings.ToLower(kind) + "s"}
}

// grantWidgets gives the agent rights on a group as a user does: with a role that has the
// aggregation label.
func grantWidgets(s *scene) {
	s.t.Helper()
	s.aggregate("widgets-for-works", `[{"apiGroups":["example.com"],"resources":["*"],"verbs":["*"]}]`)
}
