// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// recheck is how soon a failing API server is probed again.
	recheck = 5 * time.Second
	// versionAge is the maximum age of the version.
	versionAge = time.Hour
	// probeTimeout bounds one request, maxBody how much of an answer is read.
	probeTimeout = 10 * time.Second
	maxBody      = 4 << 10
)

// Health is the result of the last probe.
type Health struct {
	// Checked is the time of the probe; zero before the first one.
	Checked time.Time
	// FailingSince is when the failures began; zero while all is well.
	FailingSince time.Time
	// Code is the HTTP status, 0 without an answer; Problem describes the failure.
	Code    int
	Problem string
	// Version is the git version of the API server; empty when unknown.
	Version string
}

// Healthy reports whether the API server was healthy at the last probe.
func (h Health) Healthy() bool { return !h.Checked.IsZero() && h.FailingSince.IsZero() }

// Prober watches the health and version of the managed cluster's API server.
type Prober struct {
	// Client reaches the API server at Host (https://address).
	Client *http.Client
	Host   string
	// Period is the time between probes while all is well.
	Period time.Duration
	Clock  clock.Clock
	// OnChange is called after each probe with a new result, and after each failed one. It
	// must not block.
	OnChange func()

	mu        sync.Mutex
	health    Health
	versionAt time.Time
}

// Health returns the result of the last probe.
func (p *Prober) Health() Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.health
}

// Run probes until ctx ends.
func (p *Prober) Run(ctx context.Context) error {
	for {
		wait := p.Period
		if !p.probe(ctx) {
			wait = min(recheck, p.Period)
		}
		select {
		case <-p.Clock.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// probe probes once and reports whether the API server is healthy.
func (p *Prober) probe(ctx context.Context) bool {
	code, problem := p.readHealth(ctx)
	now := p.Clock.Now()
	if ctx.Err() != nil {
		return true
	}
	before := p.Health()
	after := Health{Checked: now, Code: code, Problem: problem, Version: before.Version}
	if code == http.StatusOK {
		after.Version = p.readVersion(ctx, now, before)
	} else {
		after.FailingSince = cmp.Or(before.FailingSince, now)
	}
	p.mu.Lock()
	p.health = after
	p.mu.Unlock()
	if !after.Healthy() || !before.Healthy() || after.Version != before.Version {
		p.OnChange()
	}
	return after.Healthy()
}

// readHealth requests /livez, or /healthz where that is not served or not allowed.
func (p *Prober) readHealth(ctx context.Context) (code int, problem string) {
	for _, path := range []string{"/livez", "/healthz"} {
		body, status, err := p.get(ctx, path)
		if err != nil {
			return 0, err.Error()
		}
		code, problem = status, body
		if code != http.StatusNotFound && code != http.StatusForbidden {
			break
		}
	}
	if code == http.StatusOK {
		return code, ""
	}
	return code, strings.TrimSpace(problem)
}

// readVersion reads /version at start, after a failure, and when the version is old: reading it
// with every probe would double the requests of an idle agent.
func (p *Prober) readVersion(ctx context.Context, now time.Time, before Health) string {
	if before.Healthy() && before.Version != "" && now.Sub(p.versionAt) < versionAge {
		return before.Version
	}
	body, status, err := p.get(ctx, "/version")
	info := struct {
		GitVersion string `json:"gitVersion"`
	}{}
	if err != nil || status != http.StatusOK || json.Unmarshal([]byte(body), &info) != nil {
		return before.Version
	}
	p.versionAt = now
	return info.GitVersion
}

func (p *Prober) get(ctx context.Context, path string) (body string, code int, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Host+path, nil)
	if err != nil {
		return "", 0, fmt.Errorf("asking %s: %w", path, err)
	}
	response, err := p.Client.Do(request)
	if err != nil {
		return "", 0, fmt.Errorf("asking %s: %w", path, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return "", 0, fmt.Errorf("reading the answer of %s: %w", path, err)
	}
	return string(raw), response.StatusCode, nil
}
