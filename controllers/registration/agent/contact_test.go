// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

func TestTroubleSaysWhatFailsAndWhetherTheHubRefuses(t *testing.T) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	dial := func(from, to int) error {
		return &url.Error{
			Op:  "Get",
			URL: fmt.Sprintf("https://hub?resourceVersion=%d", from),
			Err: &net.OpError{Op: "read", Net: "tcp",
				Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: from},
				Addr:   &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: to},
				Err:    errors.New("connection reset by peer")},
		}
	}
	for name, tc := range map[string]struct {
		err     error
		problem string
		refused bool
	}{
		"the connection breaks": {dial(4711, 6443), "renewing: read 10.0.0.2:6443: connection reset by peer", false},
		"the query of a request is left out": {
			&url.Error{
				Op:  "Get",
				URL: "https://hub?timeoutSeconds=412",
				Err: errors.New("net/http: TLS handshake timeout"),
			},
			"renewing: net/http: TLS handshake timeout",
			false,
		},
		"the certificate is refused": {
			fmt.Errorf("x: %w", apierrors.NewUnauthorized("Unauthorized")),
			"renewing: x: Unauthorized",
			true,
		},
		"the right is gone": {
			apierrors.NewForbidden(leases, "l", errors.New("no")),
			`renewing: leases.coordination.k8s.io "l" is forbidden: no`,
			true,
		},
		"the object is gone": {
			apierrors.NewNotFound(leases, "l"),
			`renewing: leases.coordination.k8s.io "l" not found`,
			true,
		},
		"the cluster is gone": {
			ErrNoCluster, "renewing: the hub has no ManagedCluster of this name any more", true,
		},
		"the acceptance was withdrawn": {
			ErrNotAccepted, "renewing: the hub does not accept the cluster any more", true,
		},
		"the hub does not answer": {
			&url.Error{Op: "Put", URL: "https://hub", Err: context.DeadlineExceeded},
			"renewing: no answer in time",
			false,
		},
		"the hub is overloaded": {apierrors.NewTooManyRequests("slow down", 1), "renewing: slow down", false},
	} {
		t.Run(name, func(t *testing.T) {
			clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
			c := NewContact(clk, func() {})
			c.Note("renewing", tc.err)
			unknown := name == "the certificate is refused"
			require.Equal(t, Trouble{Problem: tc.problem, Since: clk.Now(), Refused: tc.refused, Unknown: unknown}, c.Trouble())
			c.Note("watching", errors.New("reset"))
			require.Equal(t, unknown, c.Unknown())
			c.Note("renewing", nil)
			require.False(t, c.Unknown())
		})
	}
	require.Equal(t, watch.Reason(dial(1, 6443)), watch.Reason(dial(2, 6443)), "a repeated attempt changes nothing")
}

func TestTroubleBeginsWithTheFirstFailureAndEndsWithTheLast(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clk := clocktesting.NewFakePassiveClock(begin)
	told := 0
	c := NewContact(clk, func() { told++ })
	c.Note("watching", nil)
	require.Zero(t, told)
	c.Note("watching", errors.New("refused"))
	clk.SetTime(begin.Add(time.Minute))
	c.Note("watching", errors.New("refused"))
	require.Equal(t, 1, told, "a repeated failure is not reported")
	c.Note("renewing", errors.New("timeout"))
	require.Equal(t, Trouble{Problem: "watching: refused", Since: begin}, c.Trouble())
	c.Note("watching", nil)
	require.Equal(
		t, Trouble{Problem: "renewing: timeout", Since: begin.Add(time.Minute)}, c.Trouble(),
		"one success does not hide another failure",
	)
	c.Note("renewing", nil)
	require.Equal(t, Trouble{}, c.Trouble())
	require.Equal(t, 4, told)
}
