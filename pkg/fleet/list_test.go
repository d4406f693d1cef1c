// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// TestMetadataIsListedAlone: the API server is asked for metadata only, page by page.
func TestMetadataIsListedAlone(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/apps/secrets" {
			http.NotFound(w, r)
			return
		}
		query := r.URL.Query()
		asked = append(asked, r.Header.Get("Accept")+" "+query.Get("labelSelector")+" "+query.Get("fieldSelector")+" "+query.Get("continue"))
		text := `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"continue":"more"},
			"items":[{"metadata":{"name":"a","labels":{"x":"y"}}}]}`
		if query.Get("continue") == "more" {
			text = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[{"metadata":{"name":"b"}}]}`
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	c, err := Connect(&rest.Config{Host: server.URL}, "hub")
	require.NoError(t, err)
	found, err := ListMetadata(t.Context(), c, Query{Resource: Secrets, Namespace: "apps", Labels: "x", Fields: "metadata.name!=c"})
	require.NoError(t, err)
	require.Len(t, found, 2)
	require.Equal(t, "a", found[0].Name)
	require.Equal(t, map[string]string{"x": "y"}, found[0].Labels)
	require.Equal(t, "b", found[1].Name)
	require.Equal(t, []string{metadataOnly + " x metadata.name!=c ", metadataOnly + " x metadata.name!=c more"}, asked)

	none, err := ListMetadata(t.Context(), c, Query{Resource: ManagedClusters})
	require.NoError(t, err, "a kind that is not served has no objects")
	require.Empty(t, none)
}
