// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"runtime/debug"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	exactjson "k8s.io/apimachinery/pkg/util/json"
)

// rule answers one admission request with the operations of a JSON patch, or with an error.
// An error that carries an API status is passed on unchanged.
type rule func(ctx context.Context, r *admissionv1.AdmissionRequest) ([]operation, error)

// operation is one operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// admission serves a rule and its advisers with the admission review protocol, in versions v1
// and v1beta1, which are the same in everything used here.
func (s *Server) admission(decide rule, advisers ...adviser) http.Handler {
	return s.bounded(maxAdmission, s.long, s.requireClient(serve(s, func(ctx context.Context, review *admissionv1.AdmissionReview) bool {
		request := review.Request
		if request == nil {
			return false
		}
		response := s.respond(ctx, request, decide)
		if response.Allowed {
			response.Warnings = advise(ctx, request, advisers)
		}
		review.Request, review.Response = nil, response
		return true
	})))
}

// serve serves one kind of review: answer replaces the request of a review by its
// response, and returns false if there is none.
func serve[T any](s *Server, answer func(context.Context, *T) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := new(T)
		done, err := s.decodeBody(r, review)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		defer done()
		if !answer(r.Context(), review) {
			http.Error(w, "the review has no request", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			s.o.Log.V(1).Info("Review was not delivered", "error", err.Error())
		}
	})
}

// guarded returns a panic of a rule as an error: one malicious object must not end the
// connection of other reviews, and the API server gets a response.
func guarded(ctx context.Context, decide rule, request *admissionv1.AdmissionRequest) (patch []operation, err error) {
	defer func() {
		if p := recover(); p != nil {
			patch, err = nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return decide(ctx, request)
}

func (s *Server) respond(ctx context.Context, request *admissionv1.AdmissionRequest, decide rule) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	patch, err := guarded(ctx, decide, request)
	if err == nil && len(patch) > 0 {
		kind := admissionv1.PatchTypeJSONPatch
		response.PatchType = &kind
		response.Patch, err = json.Marshal(patch)
	}
	if err == nil {
		return response
	}
	response.Allowed = false
	var more refusal
	if errors.As(err, &more) {
		response.Warnings = []string{more.more}
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		result := status.Status()
		response.Result = &result
		return response
	}
	s.o.Log.Error(err, "Admission request cannot be decided", "kind", request.Kind.Kind, "name", request.Name)
	line, _, _ := strings.Cut(err.Error(), "\n") // a stack trace is for the log
	response.Result = &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
		Reason: metav1.StatusReasonInternalError, Message: "the hub cannot decide this request now: " + line,
	}
	return response
}

// refusal is an error with a fixed message that clients compare as a whole; further
// information for users is shown as a warning.
type refusal struct {
	*apierrors.StatusError
	more string
}

// decodeBody decodes a JSON body, whose length bounded has limited. A long body occupies a
// decoding slot until done is called.
func (s *Server) decodeBody(r *http.Request, into any) (done func(), err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, fmt.Errorf("reading the review: the content type %q is not application/json", r.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("reading the review: %w", err)
	}
	done = func() {}
	if len(body) > usualBody {
		select {
		case s.decodes <- struct{}{}:
			done = func() { <-s.decodes }
		case <-r.Context().Done():
			return nil, fmt.Errorf("reading the review: %w", r.Context().Err())
		}
	}
	if err := json.Unmarshal(body, into); err != nil {
		done()
		return nil, fmt.Errorf("decoding the review: %w", err)
	}
	return done, nil
}

// change is a request with its objects.
type change[T any] struct {
	*admissionv1.AdmissionRequest
	now, old *T
	// creates is true if there is no old object; old is then empty.
	creates bool
}

// changing returns a rule that gets the objects of the request.
func changing[T any](decide func(context.Context, change[T]) ([]operation, error)) rule {
	return func(ctx context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
		c, err := read[T](r)
		if err != nil {
			return nil, err
		}
		return decide(ctx, c)
	}
}

// validating returns a rule that changes nothing.
func validating[T any](check func(context.Context, change[T]) error) rule {
	return changing(func(ctx context.Context, c change[T]) ([]operation, error) { return nil, check(ctx, c) })
}

// advising returns an adviser that gets the objects of the request.
func advising[T any](advise func(context.Context, change[T]) []string) adviser {
	return func(ctx context.Context, r *admissionv1.AdmissionRequest) []string {
		c, err := read[T](r)
		if err != nil {
			return nil
		}
		return advise(ctx, c)
	}
}

// read decodes the new object of a request, and the old one if there is one.
func read[T any](r *admissionv1.AdmissionRequest) (change[T], error) {
	c := change[T]{r, new(T), new(T), len(r.OldObject.Raw) == 0 || r.Operation == admissionv1.Create}
	// Keys are case-sensitive: the API server reads only "name", and a decision must not be
	// based on a key "Name".
	if err := exactjson.Unmarshal(r.Object.Raw, c.now); err != nil {
		return c, badRequest("the object cannot be decoded: %s", err)
	}
	if c.creates {
		return c, nil
	}
	if err := exactjson.Unmarshal(r.OldObject.Raw, c.old); err != nil {
		return c, badRequest("the old object cannot be decoded: %s", err)
	}
	return c, nil
}

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

func forbidden(what schema.GroupResource, name, format string, args ...any) error {
	return apierrors.NewForbidden(what, name, fmt.Errorf(format, args...))
}
