// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// watched is a stream that calls do once text has been written to it.
type watched struct {
	kept bytes.Buffer
	text string
	do   func()
}

// Write keeps what is written.
func (w *watched) Write(p []byte) (int, error) {
	n, err := w.kept.Write(p)
	if w.do != nil && strings.Contains(w.kept.String(), w.text) {
		w.do()
		w.do = nil
	}
	return n, err
}

// TestAWaitTellsWhatItSeesAndEndsWhenItIsInterrupted: each cluster has a line with what
// it waits for, and an interrupt ends the wait at once.
func TestAWaitTellsWhatItSeesAndEndsWhenItIsInterrupted(t *testing.T) {
	for line, want := range map[string]string{
		"work wait batch": "deployment/web: Available=False: Resource is not available",
		"work apply hello -f - -c cluster1,cluster2 --wait": "the agent has not answered",
		"addon enable logs -c cluster1 --wait":              "nothing has reported yet whether it works",
	} {
		t.Run(line, func(t *testing.T) {
			s := newAddOnsScene(t)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			errs := &watched{text: want, do: interrupt}
			var out bytes.Buffer
			streams := app.Streams{In: strings.NewReader(manifest), Out: &out, Err: errs, Clock: clock.RealClock{}, Getenv: func(n string) string { return s.env[n] }}
			code := app.Run(ctx, streams, append([]string{"kubectl-ocm"}, strings.Fields(line+" --context hub --timeout 90s")...))
			require.Equal(t, ui.ExitFailed, code)
			require.Contains(t, errs.kept.String(), want)
			require.Contains(t, errs.kept.String(), "error: interrupted\n")
		})
	}
}
