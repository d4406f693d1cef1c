// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

// Refusal is an answer of the hub or of an agent itself.
type Refusal struct {
	// RetryIn is after how many seconds the request may be sent again; 0 says nothing of that.
	RetryIn int32

	code        int
	cause, text string
}

// New returns a refusal with an HTTP status code, one of the causes of package connect, and a
// message for people.
func New(code int, cause, format string, args ...any) *Refusal {
	return &Refusal{code: code, cause: cause, text: fmt.Sprintf(format, args...)}
}

// reasons are those of Kubernetes for the codes that are used.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest: metav1.StatusReasonBadRequest, http.StatusUnauthorized: metav1.StatusReasonUnauthorized,
	http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound,
	http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests, http.StatusBadGateway: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
}

// Write answers a request to a cluster with a Status, which every client of Kubernetes shows.
func (r *Refusal) Write(w http.ResponseWriter, cluster string) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(r.code), Reason: reasons[r.code], Message: r.text,
		Details: &metav1.StatusDetails{
			Name: cluster, Group: connectv1alpha1.GroupName, Kind: connectv1alpha1.ResourceManagedClusters, RetryAfterSeconds: r.RetryIn,
			Causes: []metav1.StatusCause{{Type: metav1.CauseType(r.cause), Message: r.text}},
		},
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set(connectv1alpha1.HeaderError, r.cause)
	if r.RetryIn > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(r.RetryIn)))
	}
	w.WriteHeader(r.code)
	_ = json.NewEncoder(w).Encode(status) // a client that is gone needs no answer
}
