// SPDX-License-Identifier: Apache-2.0

package fakefleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxAnswer bounds how much of an answer is read, in bytes.
const maxAnswer = 64 << 20

// Request is a kind of request to the API server.
type Request struct {
	// Method is the HTTP method, or WATCH.
	Method string
	// Resource is the plural, with its subresource: "managedclusters/status".
	Resource string
	// Code is the status code of the answer, 0 when there was none.
	Code int
}

// counts holds how often each request was made.
type counts struct {
	mu sync.Mutex
	n  map[Request]int64
}

func (c *counts) add(r Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[Request]int64{}
	}
	c.n[r]++
}

func (c *counts) snapshot() map[Request]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// wire makes requests as one identity on one connection. client-go would do the same with
// ten times the memory for each agent.
type wire struct {
	http   *http.Client
	host   string
	name   string
	counts *counts
}

// call is one request. The body and into may be nil.
type call struct {
	method, path, query string
	resource            string
	contentType         string
	body                []byte
}

func (w *wire) send(ctx context.Context, c call) (*http.Response, error) {
	url := w.host + c.path
	if c.query != "" {
		url += "?" + c.query
	}
	r, err := http.NewRequestWithContext(ctx, c.method, url, bytes.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", w.name)
	if len(c.body) > 0 {
		r.Header.Set("Content-Type", c.contentType)
	}
	answer, err := w.http.Do(r)
	seen := Request{Method: c.method, Resource: c.resource}
	if strings.Contains(c.query, "watch=1") {
		seen.Method = "WATCH"
	}
	if err == nil {
		seen.Code = answer.StatusCode
	}
	w.counts.add(seen)
	return answer, err
}

// do makes a request and decodes the answer into into, if that is not nil. A refusal by
// the API server is an error that package apierrors recognizes.
func (w *wire) do(ctx context.Context, c call, into any) error {
	answer, err := w.send(ctx, c)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the answer to %s %s: %w", c.method, c.path, err)
	}
	if answer.StatusCode >= http.StatusBadRequest {
		return refusal(answer, raw)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

// refusal returns an answer as an error of package apierrors.
func refusal(answer *http.Response, raw []byte) error {
	status := metav1.Status{}
	if json.Unmarshal(raw, &status) != nil || status.Reason == "" {
		return apierrors.NewGenericServerResponse(answer.StatusCode, answer.Request.Method, schemaless, "", strings.TrimSpace(string(raw)), 0, true)
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// follow watches one object and calls seen with each event until the stream ends. A
// refused watch and a broken stream are errors.
func (w *wire) follow(ctx context.Context, c call, seen func(kind string, object json.RawMessage) error) error {
	c.method = http.MethodGet
	answer, err := w.send(ctx, c)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= http.StatusBadRequest {
		raw, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
		return refusal(answer, raw)
	}
	for decoder := json.NewDecoder(answer.Body); ; {
		var event struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			return err
		}
		if event.Type == "ERROR" {
			return refusal(answer, event.Object)
		}
		if err := seen(event.Type, event.Object); err != nil {
			return err
		}
	}
}
