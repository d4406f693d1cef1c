// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

func TestRandomTextIsOfLettersAndDigits(t *testing.T) {
	text, err := randomText(bytes.NewReader([]byte{255, 0, 35, 36, 251, 254, 7}), 5)
	require.NoError(t, err)
	require.Equal(t, "a9a9h", text)
	_, err = randomText(strings.NewReader(""), 1)
	require.Error(t, err)
}

func TestCredentialsOfTokens(t *testing.T) {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	id, err := credentialID("h." + part(`{"jti":"1-2"}`) + ".s")
	require.NoError(t, err)
	require.Equal(t, "JTI=1-2", id)
	for _, wrong := range []string{"", "a.b", "h.!.s", "h." + part("no") + ".s"} {
		_, err := credentialID(wrong)
		require.Error(t, err)
	}
}

// Managed services issue no long-lived tokens, and show that only in their response.
func TestATokenEndsWhenTheAPIServerSays(t *testing.T) {
	wanted := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		said string
		want time.Time
	}{
		"as was asked for":        {"2026-01-31T12:00:00Z", wanted},
		"a day at most":           {"2026-01-02T12:00:00Z", time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)},
		"longer, by other clocks": {"2026-01-31T12:00:07Z", wanted},
		"nothing":                 {"", wanted},
	} {
		t.Run(name, func(t *testing.T) {
			var stored []byte
			claims := base64.RawURLEncoding.EncodeToString([]byte(`{"jti":"x"}`))
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if r.Method == http.MethodPost {
					_, _ = fmt.Fprintf(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","status":{"token":"a.%s.b","expirationTimestamp":%q}}`, claims,
						tc.said)
					return
				}
				stored, _ = io.ReadAll(r.Body)
				_, _ = w.Write(stored)
			}))
			defer server.Close()
			client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
			require.NoError(t, err)
			o := &Options{Hub: &fleet.Cluster{Client: client}, TTL: time.Hour}
			result := &Result{ID: "abc123", Expires: metav1.NewTime(wanted)}
			require.NoError(t, o.requestToken(t.Context(), o.tokenSecret(result), result))
			require.Equal(t, tc.want, result.Expires.Time)
			u := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal(stored, &u.Object))
			require.Equal(t, tc.want.Format(time.RFC3339), fleet.SecretValue(u, clusterv1.JoinTokenKeyExpiration))
		})
	}
}

// The hub itself denies the requests of a revoked token; coming second is not an error.
func TestRevokingIsDoneWhenTheHubWasFaster(t *testing.T) {
	answers := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		secret := `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"open-cluster-management","name":"join-token-abc123","uid":"u","labels":{"` +
			clusterv1.LabelJoinToken + `":"abc123"}},"data":{"` + clusterv1.JoinTokenKeyCredentialID + `":"` + encode("JTI=x") + `"}}`
		switch {
		case r.Method == http.MethodPut:
			answers++
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Conflict","code":409}`))
		case r.Method == http.MethodDelete:
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Status","status":"Success"}`))
		case strings.HasSuffix(r.URL.Path, "/certificatesigningrequests"):
			_, _ = w.Write([]byte(`{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequestList","items":[
				{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest",
				"metadata":{"name":"c1-x"},"spec":{"extra":{"` + clusterv1.ExtraCredentialID + `":["JTI=x"]}}}]}`))
		case strings.HasSuffix(r.URL.Path, "/join-token-abc123"):
			_, _ = w.Write([]byte(secret))
		case strings.Contains(r.URL.Path, "/namespaces/open-cluster-management/"):
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"SecretList","items":[` + secret + `]}`))
		default:
			_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"SecretList","items":[]}`))
		}
	}))
	defer server.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	changes, err := Revoke(t.Context(), RevokeOptions{Hub: &fleet.Cluster{Client: client}, ID: "abc123",
		Common: fleet.Common{Clock: clock.RealClock{}}})
	require.NoError(t, err)
	require.Len(t, changes, 1)
	require.Equal(t, 1, answers)
}
