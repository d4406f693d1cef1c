// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// If a server is busy for longer than a request may last, the error comes at once and
// contains that time. client-go itself waits for a shorter time, and other responses pass
// unchanged.
func TestABusyServerIsNotWaitedForInTheRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		code   int
		after  string
		rest   time.Duration
		asked  int32
		busy   bool
		reason metav1.StatusReason
	}{
		"for half a minute": {
			http.StatusTooManyRequests,
			"30",
			30 * time.Second,
			1,
			true,
			metav1.StatusReasonTooManyRequests,
		},
		"for a day": {
			http.StatusTooManyRequests,
			"86400",
			5 * time.Minute,
			1,
			true,
			metav1.StatusReasonTooManyRequests,
		},
		"a server that is away": {
			http.StatusServiceUnavailable,
			"60",
			time.Minute,
			1,
			true,
			metav1.StatusReasonServiceUnavailable,
		},
		"for no time": {http.StatusTooManyRequests, "0", 0, 2, false, ""},
		"a time that is no number": {
			http.StatusTooManyRequests,
			"Wed, 21 Oct 2026 07:28:00 GMT",
			0,
			1,
			true,
			metav1.StatusReasonTooManyRequests,
		},
		"another refusal": {http.StatusForbidden, "30", 30 * time.Second, 1, true, metav1.StatusReasonForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if asked.Add(1) > 1 {
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}`))
					return
				}
				w.Header().Set("Retry-After", tc.after)
				w.WriteHeader(tc.code)
				_, _ = w.Write([]byte("busy"))
			}))
			t.Cleanup(server.Close)
			config := &rest.Config{Host: server.URL}
			config.Wrap(Patient)
			client, err := dynamic.NewForConfig(config)
			require.NoError(t, err)
			_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("a").Get(t.Context(), "one", metav1.GetOptions{})
			require.Equal(t, tc.asked, asked.Load())
			require.Equal(t, tc.rest, RetryAfter(err))
			if !tc.busy {
				require.NoError(t, err)
				return
			}
			require.Equal(t, tc.reason, apierrors.ReasonForError(err))
			if tc.code != http.StatusForbidden && tc.rest > 0 {
				require.Contains(t, Message(err, false), "the API server is busy")
			}
		})
	}
}
