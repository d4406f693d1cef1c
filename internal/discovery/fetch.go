// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// accept prefers the aggregated document and accepts the plain one.
	accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
		"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
	// maxDocument bounds the size of one response, in bytes.
	maxDocument = 32 << 20
	// timeout bounds one request.
	timeout = 30 * time.Second

	pathCore   = "/api"
	pathGroups = "/apis"
)

// page is what was read of one path; the document itself is not kept.
type page struct {
	etag  string
	table *table
	// read is when the server was last queried; zero queries it again.
	read time.Time
}

// fresh reports whether the path was read within the last second.
func (m *Mapper) fresh(path string) bool {
	p := m.pages[path]
	return !p.read.IsZero() && m.clock.Since(p.read) < refreshEvery
}

// refresh reads the server's documents again: both for a server with aggregated
// discovery, else the one of the group and version in question.
func (m *Mapper) refresh(ctx context.Context, want schema.GroupVersion) error {
	for _, path := range []string{pathCore, pathGroups} {
		if err := m.readAggregated(ctx, path); err != nil {
			return err
		}
	}
	if m.legacy {
		return m.readVersion(ctx, want)
	}
	return nil
}

// refreshGroup is refresh for all versions of a group.
func (m *Mapper) refreshGroup(ctx context.Context, want schema.GroupVersion) error {
	if err := m.refresh(ctx, want); err != nil || !m.legacy || want.Group == "" {
		return err
	}
	body, status, _, err := m.get(ctx, pathGroups+"/"+want.Group, "")
	if err != nil || status != http.StatusOK {
		return err
	}
	var group metav1.APIGroup
	if err := json.Unmarshal(body, &group); err != nil {
		return fmt.Errorf("decoding the versions of %s: %w", want.Group, err)
	}
	for _, v := range group.Versions {
		if err := m.readVersion(ctx, schema.GroupVersion{Group: want.Group, Version: v.Version}); err != nil {
			return err
		}
	}
	return nil
}

// readAggregated reads one of the two documents of a server with aggregated discovery, or
// records that the server has none.
func (m *Mapper) readAggregated(ctx context.Context, path string) error {
	if m.legacy || m.fresh(path) {
		return nil
	}
	last := m.pages[path]
	body, status, etag, err := m.get(ctx, path, last.etag)
	switch {
	case err != nil:
		return err
	case status == http.StatusNotModified:
		last.read = m.clock.Now()
		m.pages[path] = last
		return nil
	case status != http.StatusOK:
		return fmt.Errorf("reading %s of the API server: status %d", path, status)
	}
	t := newTable()
	aggregated, err := t.read(body)
	if err != nil {
		return err
	}
	if !aggregated {
		m.legacy = true
		clear(m.pages)
		return nil
	}
	m.pages[path] = page{etag: etag, table: t, read: m.clock.Now()}
	return nil
}

// readVersion reads the document of one group and version. If the server returns an
// error, the group is marked as stale.
func (m *Mapper) readVersion(ctx context.Context, gv schema.GroupVersion) error {
	path := pathGroups + "/" + gv.String()
	if gv.Group == "" {
		path = pathCore + "/" + gv.Version
	}
	if m.fresh(path) {
		return nil
	}
	body, status, _, err := m.get(ctx, path, "")
	if err != nil {
		return err
	}
	t := newTable()
	switch status {
	case http.StatusOK:
		err = t.readVersion(gv, body)
	case http.StatusNotFound:
	default:
		t.stale[gv.Group] = true
	}
	m.pages[path] = page{table: t, read: m.clock.Now()}
	return err
}

// get sends one request and reads its response, bounded in time and size.
func (m *Mapper) get(ctx context.Context, path, etag string) (body []byte, status int, newTag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.base.JoinPath(path).String(), nil)
	if err != nil {
		return nil, 0, "", fmt.Errorf("asking the API server for %s: %w", path, err)
	}
	request.Header.Set("Accept", accept)
	if etag != "" {
		request.Header.Set("If-None-Match", etag)
	}
	response, err := m.client.Do(request)
	if err != nil {
		return nil, 0, "", fmt.Errorf("asking the API server for %s: %w", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	if err != nil {
		return nil, 0, "", fmt.Errorf("reading %s of the API server: %w", path, err)
	}
	if len(body) > maxDocument {
		return nil, 0, "", fmt.Errorf("reading %s of the API server: the document is larger than %d bytes", path, maxDocument)
	}
	return body, response.StatusCode, response.Header.Get("Etag"), nil
}
