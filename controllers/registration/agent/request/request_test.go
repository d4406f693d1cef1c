// SPDX-License-Identifier: Apache-2.0

package request

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
