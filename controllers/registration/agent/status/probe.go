// SPDX-License-Identifier: Apache-2.0

package status

import (
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
	// recheck is how soon a failing API server is looked at again.
	recheck = 5 * time.Second
	// versionAge is how old the version may get.
	versionAge = time.Hour
	// probeTimeout bounds one request, maxBody what is read of an answer.
	probeTimeout = 10 * time.Second
	maxBody      = 4 << 10
)

// Health is what the last probe found.
type Health struct {
	// Checked is when, zero before the first probe.
	Checked time.Time
	// FailingSince is when the failures began, zero while all is well.
	FailingSince time.Time
	// Code is the HTTP status, 0 without an answer; Problem describes it.
	Code    int
	Problem string
	// Version is the git version of the API server, empty when it is not known.
	Version string
}

// Healthy tells whether the API server was well at the last probe.
func (h Health) Healthy() bool { return !h.Checked.IsZero() && h.FailingSince.IsZero() }

// Prober watches over the health and version of the own API server.
type Prober struct {
	// Client reaches the API server at Host (https://address).
	Client *http.Client
	Host   string
	// Period is the time between probes while all is well.
	Period time.Duration
	Clock  clock.Clock
	// OnChange is called after each probe that found something new, and after
	// each that failed. It must not block.
	OnChange func()

	mu        sync.Mutex
	health    Health
	versionAt time.Time
}

// Health returns what the last probe found.
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
		timer := p.Clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// probe looks once and tells whether all is well.
func (p *Prober) probe(ctx context.Context) bool {
	code, problem := p.alive(ctx)
	now := p.Clock.Now()
	if ctx.Err() != nil {
		return true
	}
	before := p.Health()
	after := Health{Checked: now, Code: code, Problem: problem, Version: before.Version}
	if code != http.StatusOK {
		if after.FailingSince = before.FailingSince; after.FailingSince.IsZero() {
			after.FailingSince = now
		}
	} else {
		after.Version = p.version(ctx, now, before)
	}
	p.mu.Lock()
	p.health = after
	p.mu.Unlock()
	if !after.Healthy() || !before.Healthy() || after.Version != before.Version {
		p.OnChange()
	}
	return after.Healthy()
}

// alive asks /livez, and /healthz where that is not served or not allowed.
func (p *Prober) alive(ctx context.Context) (code int, problem string) {
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

// version reads /version at start, after a failure, and when it is old: a
// request with every probe would double what an idle agent sends.
func (p *Prober) version(ctx context.Context, now time.Time, before Health) string {
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
