// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patience is how long client-go may itself wait for a busy API server. It is shorter
// than requestTimeout; otherwise client-go would wait past the end of its request, give
// up, and the request would be repeated before the time that the server named.
const patience = 10 * time.Second

// Patient wraps next. When a busy server asks for a longer wait than client-go may make,
// its response becomes an error at once; RetryAfter returns that time.
func Patient(next http.RoundTripper) http.RoundTripper { return patient{next} }

type patient struct{ next http.RoundTripper }

// RoundTrip sends the request.
func (p patient) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := p.next.RoundTrip(request)
	if err != nil || (response.StatusCode != http.StatusTooManyRequests && response.StatusCode < http.StatusInternalServerError) {
		return response, err
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > int(patience/time.Second) {
		return surrender(response, seconds)
	}
	return response, nil
}

// surrender moves the time from the header, for which client-go would wait, into the
// body, from where it gets into the error.
func surrender(response *http.Response, seconds int) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10)) // so that the connection can be used again
	_ = response.Body.Close()
	reason := metav1.StatusReasonTooManyRequests
	if response.StatusCode != http.StatusTooManyRequests {
		reason = metav1.StatusReasonServiceUnavailable
	}
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Reason:   reason,
		Code:     int32(response.StatusCode), //nolint:gosec // three digits
		Message:  fmt.Sprintf("the API server is busy (code %d) and asks to come back after %d s", response.StatusCode, seconds),
		Details:  &metav1.StatusDetails{RetryAfterSeconds: int32(min(seconds, maxRetryAfter))}, //nolint:gosec // bounded
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	out := *response
	out.Header = response.Header.Clone()
	out.Header.Del("Retry-After")
	out.Header.Del("Content-Encoding")
	out.Header.Del("Content-Length")
	out.Header.Set("Content-Type", "application/json")
	out.Body, out.ContentLength, out.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	return &out, nil
}

// maxRetryAfter bounds the wait that a server may ask for, in seconds.
const maxRetryAfter = 300

// RetryAfter returns how long a busy API server asks clients to wait, at most five
// minutes; zero for every other error.
func RetryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(min(seconds, maxRetryAfter)) * time.Second
}
