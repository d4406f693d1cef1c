// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/apitest"
)

// now is the time in all tests; created is five minutes earlier.
const (
	now     = "2026-11-21T12:00:00Z"
	created = "2026-11-21T11:55:00Z"
)

// scene is a hub and a managed cluster in memory, and the environment of a user.
type scene struct {
	t          *testing.T
	hub, spoke *apitest.Server
	env        map[string]string
	width      int
}

func newScene(t *testing.T) *scene {
	t.Helper()
	fleet, err := os.ReadFile("testdata/fleet.yaml")
	require.NoError(t, err)
	s := &scene{t: t, hub: apitest.New(t, created, string(fleet)), spoke: apitest.New(t, created), env: map[string]string{
		"LANG": "C.UTF-8", "KUBERNETES_EXEC_INFO": asks(`{"clusterName":"cluster1"}`),
	}}
	t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"hub": s.hub, "spoke": s.spoke}))
	t.Setenv("HOME", t.TempDir())
	return s
}

// said is what one run printed.
type said struct {
	code     int
	out, err string
}

// run runs the program at the fixed time. Addresses and CA hashes, which differ between
// runs, are replaced.
func (s *scene) run(words ...string) said {
	s.t.Helper()
	return s.runIn("", words...)
}

func (s *scene) runIn(stdin string, words ...string) said {
	s.t.Helper()
	return s.runUntil(s.t.Context(), stdin, words...)
}

// runUntil is runIn that ends with ctx.
func (s *scene) runUntil(ctx context.Context, stdin string, words ...string) said {
	s.t.Helper()
	at, err := time.Parse(time.RFC3339, now)
	require.NoError(s.t, err)
	var out, errs bytes.Buffer
	clk := clocktesting.NewFakeClock(at)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	code := app.Run(ctx, app.Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs, Clock: clk, Width: s.width,
		Getenv: func(name string) string { return s.env[name] }}, append([]string{"/krew/bin/kubectl-ocm"}, words...))
	return said{code, s.stable(out.String()), byCluster(s.stable(errs.String()))}
}

// progress matches a line about one of several clusters that a command waits for at once.
var progress = regexp.MustCompile(`^[…✓✗] (?:\S+ on )?(cluster\d+) `)

// byCluster sorts consecutive progress lines by cluster, because their order differs
// between runs.
func byCluster(text string) string {
	lines := strings.Split(text, "\n")
	name := func(line string) string {
		if m := progress.FindStringSubmatch(line); m != nil {
			return m[1]
		}
		return ""
	}
	for from := 0; from < len(lines); from++ {
		to := from
		for to < len(lines) && name(lines[to]) != "" {
			to++
		}
		slices.SortStableFunc(lines[from:to], func(a, b string) int { return strings.Compare(name(a), name(b)) })
		from = max(from, to)
	}
	return strings.Join(lines, "\n")
}

var (
	hashes = regexp.MustCompile(`sha256:[0-9a-f]{12,64}`)
	bundle = regexp.MustCompile(`certificate-authority-data: \S+`)
	tokens = regexp.MustCompile(`token [0-9a-z]{6} expires`)
	chunks = regexp.MustCompile(`[A-Za-z0-9+/]+={0,2}`)
)

func (s *scene) stable(text string) string {
	text = strings.ReplaceAll(text, s.hub.URL, "https://hub:6443")
	text = strings.ReplaceAll(text, s.spoke.URL, "https://spoke:6443")
	text = hashes.ReplaceAllString(text, "sha256:<hash>")
	text = tokens.ReplaceAllString(text, "token <id> expires")
	text = bundle.ReplaceAllString(text, "certificate-authority-data: <ca>")
	return chunks.ReplaceAllStringFunc(text, func(chunk string) string {
		if len(chunk) < isData {
			return chunk
		}
		return "<data>"
	})
}

// isData is the least length of base64 that is replaced. In the expression, it would take a tenth
// of the suite's time.
const isData = 200
