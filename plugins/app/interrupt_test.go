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

// waits has, for every command that can wait, a line that waits in this scene for ever, and what is
// printed before or while it does. Some have none: nothing here keeps what they delete.
var waits = map[string]struct{ line, printed string }{
	"accept":        {"cluster3 --wait --context hub", "hub: context hub"},
	"addon delete":  {},
	"addon disable": {},
	"addon enable":  {"hello -c cluster1 --wait --context hub", "nothing has reported yet"},
	"addon resume":  {"fleetd --wait --context hub", "the hub has not processed"},
	"check":         {"--wait 90s --context hub", "errors"},
	"cluster deny":  {},
	"hub init":      {"--context spoke", "0/1 ready"},
	"hub restore":   {},
	"hub status":    {"--wait --context hub", "1/1 ready"},
	"hub upgrade":   {"--version v0.2.0 --context hub", "1/1 ready"},
	"join":          {"cluster4 --context spoke --hub-context hub --accept", "agent installed"},
	"work apply":    {"hello -f - -c cluster1,cluster2 --wait --context hub", "the agent has not answered"},
	"work delete":   {},
	"work wait":     {"batch --context hub", "Available=False"},
}

// TestEveryWaitEndsWhenItIsInterrupted: an interrupt ends the wait of each command at once, and the
// last lines say what happened and what to do.
func TestEveryWaitEndsWhenItIsInterrupted(t *testing.T) {
	for _, c := range commands(t) {
		if c.LocalFlags().Lookup("wait") != nil || c.path == "work wait" {
			require.Contains(t, waits, c.path, "a command that waits needs a line here")
		}
	}
	for path, wait := range waits {
		if wait.line == "" {
			continue
		}
		t.Run(path, func(t *testing.T) {
			s := newAddOnsScene(t)
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			out, errs := &watched{text: wait.printed, do: interrupt}, &watched{text: wait.printed, do: interrupt}
			streams := app.Streams{In: strings.NewReader(manifest), Out: out, Err: errs, Clock: clock.RealClock{}, Getenv: func(n string) string { return s.env[n] }}
			code := app.Run(ctx, streams, append(append([]string{"kubectl-ocm"}, words(path)...), strings.Fields(wait.line)...))
			require.Equal(t, ui.ExitFailed, code, errs.kept.String())
			require.True(t, out.do == nil || errs.do == nil, "it waits: %s", errs.kept.String())
			require.Regexp(t, "error: interrupted\n  fix:   run the same command again; it continues where it stopped\n$", errs.kept.String())
		})
	}
}
