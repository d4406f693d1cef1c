// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/audit"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
)

const (
	// AtOnce is how many requests of a benchmark are in flight at a time.
	AtOnce = 16
	// named is how many objects of each kind of request are logged by name.
	named = 5
	// Patience bounds every wait.
	Patience = 10 * time.Minute
)

// Scene is a running hub.
type Scene struct {
	*harness.Cluster
	*audit.Log
	// Dyn is an administrator's client.
	Dyn dynamic.Interface

	t       *testing.T
	program string
}

// New starts a hub whose audit log leaves out what the rules leave out.
func New(t *testing.T, rules ...string) *Scene {
	t.Helper()
	return With(t, nil, rules...)
}

// With does the same with options of the cluster.
func With(t *testing.T, options []harness.Option, rules ...string) *Scene {
	t.Helper()
	s := &Scene{t: t, program: harness.Program(t, "controllers/ocm-hub"), Log: audit.New(t, rules...)}
	s.Cluster = harness.WithNode(t, "hub", map[string]string{"ocm-hub": s.program}, append(options, harness.APIServer(s.Flags()...))...)
	s.Dyn = s.Dynamic(t)
	cluster, err := fleet.Connect(s.Config, "hub")
	require.NoError(t, err)
	_, err = hub.Init(t.Context(), hub.InitOptions{Common: fleet.Common{Wait: true}, Hub: cluster, Version: "v0.0.0-perf"})
	require.NoError(t, err)
	return s
}

// PIDs returns the IDs of the hub's processes: one, or none while it is away.
func (s *Scene) PIDs() []int { return budget.Processes(s.t, s.program) }

// PID returns the ID of the hub's process.
func (s *Scene) PID() int {
	s.t.Helper()
	pids := s.PIDs()
	require.Len(s.t, pids, 1)
	return pids[0]
}

// Memory returns the memory of the hub's process.
func (s *Scene) Memory() memory.Usage {
	s.t.Helper()
	return budget.MemoryOf(s.t, s.PID())
}

// Each runs do for the numbers in [from, to), several at a time.
func (s *Scene) Each(from, to int, do func(ctx context.Context, i int) error) {
	s.t.Helper()
	group, ctx := errgroup.WithContext(s.t.Context())
	group.SetLimit(AtOnce)
	for i := from; i < to; i++ {
		group.Go(func() error { return do(ctx, i) })
	}
	require.NoError(s.t, group.Wait())
}

// Asked returns the successful requests of the hub since a mark, without reviews: the
// names of the objects by kind of request.
func (s *Scene) Asked(mark int64) map[string][]string {
	s.t.Helper()
	out := map[string][]string{}
	for _, r := range s.Since(mark) {
		if OfHub(r) && r.Done() && !r.Reviews() {
			out[r.What()] = append(out[r.What()], r.Object.Name)
		}
	}
	return out
}

// Sum logs what was requested and returns the number of requests, without those for
// Events.
func (s *Scene) Sum(title string, asked map[string][]string) float64 {
	s.t.Helper()
	n := 0
	for what, names := range asked {
		s.t.Logf("%s: %6d %s: %s", title, len(names), what, strings.Join(names[:min(len(names), named)], ", "))
		if !strings.HasSuffix(what, " events") {
			n += len(names)
		}
	}
	return float64(n)
}

// Settle waits until the hub has sent nothing for a while, successful or not.
func (s *Scene) Settle(quiet time.Duration) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		from := s.Mark()
		<-time.After(quiet)
		return !slices.ContainsFunc(s.Since(from), func(r audit.Request) bool { return OfHub(r) && !r.Reviews() })
	}, Patience, time.Millisecond)
}

// Object decodes an object from its JSON form.
func Object(text string, args ...any) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(fmt.Appendf(nil, text, args...)); err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	return u, nil
}
