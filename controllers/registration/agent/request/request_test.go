// SPDX-License-Identifier: Apache-2.0

package request

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

func TestRequestOnTheHub(t *testing.T) {
	condition := func(kind, reason, message string) map[string]any {
		return map[string]any{"type": kind, "status": "True", "reason": reason, "message": message}
	}
	for name, tc := range map[string]struct {
		status map[string]any
		want   Answer
	}{
		"new": {nil, Answer{Known: true, Found: true}},
		"approved": {
			map[string]any{"conditions": []any{condition("Approved", "R", "m")}},
			Answer{Known: true, Found: true, Approved: true},
		},
		"denied": {
			map[string]any{"conditions": []any{condition("Denied", "R", "m")}},
			Answer{Known: true, Found: true, Denied: true, Message: "R: m"},
		},
		"failed": {
			map[string]any{"conditions": []any{condition("Failed", "R", "m")}},
			Answer{Known: true, Found: true, Denied: true, Message: "R: m"},
		},
		"denied at length": {map[string]any{"conditions": []any{condition("Denied", "R", strings.Repeat("ä", 3000))}},
			Answer{Known: true, Found: true, Denied: true, Message: "R: " + strings.Repeat("ä", 510) + "..."}},
		"issued": {map[string]any{"certificate": base64.StdEncoding.EncodeToString([]byte("pem"))},
			Answer{Known: true, Found: true, Certificate: []byte("pem")}},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			if tc.status != nil {
				u.Object["status"] = tc.status
			}
			got, ok := readAnswer(u)
			require.True(t, ok)
			require.Empty(t, cmp.Diff(tc.want, got))
		})
	}
}

func TestRetryDelayDoublesToAnHour(t *testing.T) {
	for attempt, want := range map[int]time.Duration{
		0:    30 * time.Second,
		1:    30 * time.Second,
		2:    time.Minute,
		3:    2 * time.Minute,
		7:    32 * time.Minute,
		8:    time.Hour,
		1000: time.Hour,
	} {
		require.Equal(t, want, retryDelay(attempt), attempt)
	}
}

func TestACacheThatStaysBehindIsWaitedForLonger(t *testing.T) {
	for times, want := range map[int]time.Duration{
		0:       20 * time.Millisecond,
		1:       20 * time.Millisecond,
		2:       40 * time.Millisecond,
		9:       5120 * time.Millisecond,
		10:      10 * time.Second,
		1 << 40: 10 * time.Second,
	} {
		require.Equal(t, want, Behind(times), times)
	}
}

func TestARequestIsOnlyGivenUpOnceAReadConfirmsThatItIsGone(t *testing.T) {
	for name, tc := range map[string]struct {
		code int
		body string
		want func(error) bool
	}{
		"the watch is behind": {
			200, `{"kind":"CertificateSigningRequest","apiVersion":"certificates.k8s.io/v1","metadata":{"name":"r1"}}`, apierrors.IsAlreadyExists,
		},
		"it is gone":          {404, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, isNil},
		"it may not be read":  {403, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, isNil},
		"the hub has trouble": {500, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}`, apierrors.IsInternalError},
	} {
		t.Run(name, func(t *testing.T) {
			var asked string
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.Method + " " + r.URL.Path
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.code)
				_, _ = w.Write([]byte(tc.body))
			}))
			defer api.Close()
			hub, err := dynamic.NewForConfig(&rest.Config{Host: api.URL})
			require.NoError(t, err)
			err = confirmGone(t.Context(), hub, "r1")
			require.True(t, tc.want(err), "%v", err)
			require.Equal(t, "GET /apis/certificates.k8s.io/v1/certificatesigningrequests/r1", asked)
		})
	}
}

func isNil(err error) bool { return err == nil }
