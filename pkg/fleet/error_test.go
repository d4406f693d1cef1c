// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

func TestErrorsOfTheAPIAreExplained(t *testing.T) {
	c := &Cluster{Context: "hub", Config: &rest.Config{Host: "https://hub:6443"}}
	webhook := func(text string) error {
		return apierrors.NewForbidden(ManagedClusters.GroupResource(), "c1",
			errors.New(`admission webhook "v" denied the request: `+text))
	}
	limiter := flowcontrol.NewTokenBucketRateLimiter(0.001, 1)
	require.True(t, limiter.TryAccept())
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, tc := range map[string]struct {
		err  error
		kind Kind
		want string
		fix  Fix
	}{
		"no rights": {apierrors.NewForbidden(ManagedClusters.GroupResource(), "c1", errors.New("no")),
			Failed, "no", Advice("use a user with the rights of cluster-admin on context hub")},
		"admission":          {webhook("reserved"), Failed, "reserved", nil},
		"a namespace leaves": {webhook("namespace c1 is terminating"), Failed, "is terminating", AwaitNamespaces.On(c)},
		"no answer": {&url.Error{Op: "Get", URL: "https://hub", Err: errors.New("connection refused")},
			Failed, "refused", Advice("check address, network and proxy of context hub")},
		"another CA": {
			&url.Error{Op: "Get", URL: "https://hub", Err: errors.New("x509: unknown authority")},
			Failed,
			"x509",
			NameCA.On(c),
		},
		"too late": {
			&url.Error{Op: "Get", URL: "https://hub", Err: context.DeadlineExceeded},
			Timeout,
			"deadline",
			LongerTimeout.With(),
		},
		"too late to begin": {limiter.Wait(soon), Timeout, "deadline", LongerTimeout.With()},
		"wrong login": {apierrors.NewUnauthorized("no"), Failed, "does not know this user",
			Advice("renew the credentials of context hub, for example by logging in again")},
	} {
		t.Run(name, func(t *testing.T) {
			var e *Error
			require.ErrorAs(t, Explain("reading x", c, tc.err), &e)
			require.Equal(t, tc.kind, e.Kind)
			require.Contains(t, e.Cause, tc.want)
			require.Equal(t, tc.fix, e.Fix)
		})
	}
	canceled := &url.Error{Op: "Get", URL: "https://hub", Err: context.Canceled}
	require.Equal(t, error(canceled), Explain("x", c, canceled), "an interruption is returned unchanged")
}
