// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func TestWhatWouldBeRefusedAnewIsNotDeleted(t *testing.T) {
	var sent []string
	var tried unstructured.Unstructured
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("dryRun"))
		body, _ := io.ReadAll(r.Body)
		status := metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "a policy says no",
		}
		if r.Method == http.MethodPost {
			_ = json.Unmarshal(body, &tried.Object)
		} else {
			status.Code, status.Reason = http.StatusUnprocessableEntity, metav1.StatusReasonInvalid
			status.Details = &metav1.StatusDetails{Name: "a", Causes: []metav1.StatusCause{{Field: "type", Message: "field is immutable"}}}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.Code))
		_ = json.NewEncoder(w).Encode(status)
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)

	secret, live := object(), object(ours)
	secret.SetKind("Secret")
	live.SetKind("Secret")
	live.SetUID("u")
	live.SetResourceVersion("1")
	_, err = New(client, nil).Apply(t.Context(), Request{
		Resource: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Object: secret, Live: live, Owner: ours,
		Options: Options{Strategy: "Update", Manager: "work-agent", Force: true, Owned: true},
	})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "was not deleted")
	require.Equal(t, []string{
		"PATCH /api/v1/namespaces/n/secrets/a ", "POST /api/v1/namespaces/n/secrets All",
	}, sent, "nothing is deleted")
	require.Empty(t, tried.GetName(), "the name is taken by the object that is there")
	require.Equal(t, "a", tried.GetGenerateName())
	require.Empty(t, tried.GetResourceVersion())
	require.Equal(t, []metav1.OwnerReference{ours}, tried.GetOwnerReferences())
}
