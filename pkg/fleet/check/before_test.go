// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// serverOf is an API server of a version whose clock shows a time. It has no objects.
func serverOf(t *testing.T, name, version string, at time.Time) *fleet.Cluster {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Date", at.UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Type", "application/json")
		if q.URL.Path != "/version" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
			return
		}
		_, _ = w.Write([]byte(`{"gitVersion":"` + version + `"}`))
	}))
	t.Cleanup(s.Close)
	c, err := fleet.Connect(&rest.Config{Host: s.URL}, name)
	require.NoError(t, err)
	return c
}

func codesOf(r Report) map[string]Finding {
	out := map[string]Finding{}
	for _, area := range r.Areas {
		for _, f := range area.Findings {
			out[f.Code] = f
		}
	}
	return out
}

func TestAClusterThatIsTooOldOrWhoseClockIsWrongCannotJoin(t *testing.T) {
	o := Options{Hub: serverOf(t, "hub", "v1.36.0", checkedAt), Spoke: serverOf(t, "spoke", "v1.21.9", checkedAt.Add(-10*time.Minute))}
	o.Clock = clocktesting.NewFakeClock(checkedAt)
	got := codesOf(Before(t.Context(), o))
	old := got[CodeSpokeKubernetes]
	require.Equal(t, SeverityError, old.Severity)
	require.Equal(t, "Kubernetes v1.21.9 is too old for a managed cluster", old.Title)
	require.Equal(t, "it needs 1.22 or newer", old.Cause)
	require.Equal(t, fleet.Advice("upgrade the cluster of context spoke"), old.Fix)
	require.Equal(t, "its clock differs from the hub's by 10m0s", got[CodeClusterClock].Title)

	o.Spoke = nil
	o.Hub = serverOf(t, "hub", "v1.27.3", checkedAt)
	got = codesOf(Before(t.Context(), o))
	require.Equal(t, "Kubernetes v1.27.3 is too old for a hub", got[CodeHubKubernetes].Title)
	require.Contains(t, got[CodeHubSigner].Cause, "does not sign client certificates")
}

func TestAWaitEndsWhenNothingIsLeftOrItsTimeIsOver(t *testing.T) {
	clk := clocktesting.NewFakeClock(checkedAt)
	bad := summary([]Area{{"hub", []Finding{failure(CodeHubRuns, "it is scaled to 0", "", fleet.CheckHub.With())}}}, nil)
	good := summary([]Area{{"hub", []Finding{warning(CodeHubAddress, "loopback", "", nil)}}}, nil)
	var told []string
	o := fleet.Common{Clock: clk, Progress: func(s fleet.Step) { told = append(told, strings.TrimSpace(string(s.State)+" "+s.Detail)) }}
	looks := []Report{bad, good}
	report, err := Await(t.Context(), o, SeverityError, func(context.Context) (Report, error) {
		next := looks[0]
		if looks = looks[1:]; len(looks) == 1 {
			go func() {
				for !clk.HasWaiters() {
					runtime.Gosched()
				}
				clk.Step(lookAgain)
			}()
		}
		return next, nil
	})
	require.NoError(t, err)
	require.Equal(t, good, report)
	require.Equal(t, []string{"running", "running 1 error, 0 warnings: OCM0203 it is scaled to 0", "done 0 ok"}, told)

	// The first look is finished, however short the time is.
	o.Timeout = time.Nanosecond
	report, err = Await(t.Context(), o, SeverityWarning, func(ctx context.Context) (Report, error) { return good, ctx.Err() })
	var e *fleet.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, fleet.Timeout, e.Kind)
	require.Equal(t, "OCM0204 loopback", e.Cause)
	require.Equal(t, good, report)

	_, err = Await(t.Context(), o, SeverityError, func(context.Context) (Report, error) {
		return Report{}, fleet.NotHub(&fleet.Cluster{Config: &rest.Config{}}, "")
	})
	require.ErrorAs(t, err, &e)
	require.Equal(t, fleet.Timeout, e.Kind, "it may become one")
	_, err = Await(t.Context(), o, SeverityError, func(context.Context) (Report, error) { return Report{}, fleet.Misuse("wrong", "", nil) })
	require.ErrorAs(t, err, &e)
	require.Equal(t, fleet.Usage, e.Kind)

	ctx, interrupt := context.WithCancel(t.Context())
	_, err = Await(ctx, o, SeverityError, func(context.Context) (Report, error) {
		interrupt()
		return bad, nil
	})
	require.ErrorIs(t, err, context.Canceled)
}
