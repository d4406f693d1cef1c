// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorded is a UI whose output is kept.
type recorded struct {
	*UI
	out, err *bytes.Buffer
}

func newUI(env map[string]string) recorded {
	var out, errs bytes.Buffer
	return recorded{&UI{Program: "kubectl ocm", Color: "auto", Streams: Streams{In: strings.NewReader(""), Out: &out, Err: &errs,
		Getenv: func(n string) string { return env[n] }, Clock: clocktesting.NewFakeClock(time.Unix(0, 0))}}, &out, &errs}
}

func TestErrorsAreToldWithCauseAndFix(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		code int
		want string
	}{
		"nothing": {nil, 0, ""},
		"plain":   {errors.New("no"), 1, "error: no\n"},
		"interrupted": {
			fmt.Errorf("waiting: %w", context.Canceled),
			1,
			"error: interrupted\n  fix:   run the same command again; it continues where it stopped\n",
		},
		"interrupted with others": {
			&fleet.Error{Kind: fleet.Partial, Message: "2 of 3", Err: context.Canceled},
			5,
			"error: interrupted\n  fix:   run the same command again; it continues where it stopped\n",
		},
		"full": {&fleet.Error{
			Kind:      fleet.Timeout,
			Message:   "timed out",
			Cause:     "pod x",
			Fix:       fleet.Advice("kubectl ocm join"),
			Since:     281 * time.Second,
			LastEvent: 12 * time.Second,
		}, 4,
			"error: timed out\n  cause: pod x\n  since: 4m41s   last event: 12s ago\n  fix:   kubectl ocm join\n"},
		"wrapped":   {fmt.Errorf("x: %w", &fleet.Error{Kind: fleet.Refused, Message: "m"}), 6, "error: m\n"},
		"usage":     {&fleet.Error{Kind: fleet.Usage, Message: "m"}, 2, "error: m\n"},
		"partial":   {&fleet.Error{Kind: fleet.Partial, Message: "m"}, 5, "error: m\n"},
		"said":      {Exit(1), 1, ""},
		"a finding": {Exit(ExitFindings), 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUI(nil)
			require.Equal(t, tc.code, u.Fail(tc.err))
			require.Equal(t, tc.want, u.err.String())
			require.Empty(t, u.out.String())
		})
	}
}

func TestCommandsInTextCarryTheNameWeWereCalledBy(t *testing.T) {
	u := newUI(nil)
	u.Program = "ocm"
	u.Fail(&fleet.Error{Message: "m", Fix: fleet.Advice("kubectl ocm join x      or kubectl get x")})
	require.Contains(t, u.err.String(), "ocm join x      or kubectl get x")
	require.NotContains(t, u.err.String(), "kubectl ocm")
}

func TestColourIsDecidedByFlagThenEnvironmentThenTerminal(t *testing.T) {
	for name, tc := range map[string]struct {
		color string
		env   map[string]string
		want  bool
	}{
		"no terminal":           {"auto", nil, false},
		"always":                {"always", map[string]string{"NO_COLOR": "1", "TERM": "dumb"}, true},
		"never":                 {"never", nil, false},
		"the environment knows": {"auto", map[string]string{"NO_COLOR": "1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUI(tc.env)
			u.Color = tc.color
			require.Equal(t, tc.want, u.coloured(u.out))
		})
	}
	require.Equal(t, "\x1b[32mTrue\x1b[0m", paint(true, toneOf("True"), "True"))
	require.Equal(t, "web", paint(true, toneOf("web"), "web"))
}

func TestProgressElsewhereThanOnATerminalIsALineForEachChange(t *testing.T) {
	u := newUI(nil)
	p := u.Progress()
	p.Step(fleet.Step{Name: "hub", State: fleet.Running})
	p.Step(fleet.Step{Name: "hub", State: fleet.Running, Detail: "0/1 ready"})
	p.Step(fleet.Step{Name: "hub", State: fleet.Running, Detail: "0/1 ready", Elapsed: time.Second})
	p.Step(fleet.Step{Name: "hub", State: fleet.Done, Detail: "1/1 ready", Elapsed: 2 * time.Second})
	p.Close()
	lines := strings.Split(strings.TrimSpace(u.err.String()), "\n")
	require.Len(t, lines, 2)
	require.Regexp(t, `^\[\.\.\] hub +0\.0s  0/1 ready$`, lines[0])
	require.Regexp(t, `^\[ok\] hub +2\.0s  1/1 ready$`, lines[1])
	require.Empty(t, u.out.String())
	quiet := newUI(nil)
	quiet.Quiet = true
	quiet.Progress().Step(fleet.Step{Name: "hub", State: fleet.Done})
	quiet.Note("x")
	quiet.Warn("x")
	require.Empty(t, quiet.err.String())
}

func TestTheColumnsOfStepsAlign(t *testing.T) {
	u := newUI(map[string]string{"LANG": "C.UTF-8"})
	p := u.Progress()
	p.Step(fleet.Step{Name: "hub", State: fleet.Done, Detail: strings.Repeat("long ", 30), Elapsed: 123 * time.Second})
	p.Step(fleet.Step{Name: "namespace, rights, controller", State: fleet.Done, Detail: "19 objects", Elapsed: time.Second})
	p.Step(fleet.Step{Name: "joined, available", State: fleet.Done, Elapsed: time.Second})
	p.Close()
	lines := strings.Split(strings.TrimSpace(u.err.String()), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, strings.Index(lines[0], "s  long"), strings.Index(lines[1], "s  19"))
	require.Equal(t, "✓ joined, available                1.0s", lines[2])
}

func TestProgressOnATerminalIsRedrawnInPlace(t *testing.T) {
	u := newUI(map[string]string{"LANG": "C.UTF-8"})
	p := &Progress{u: u.UI, terminal: true}
	p.Step(fleet.Step{Name: "hub", State: fleet.Running, Detail: "0/1 ready"})
	p.Step(fleet.Step{Name: "hub", State: fleet.Broken})
	p.Close()
	require.Contains(t, u.err.String(), "\r\x1b[K")
	require.Contains(t, u.err.String(), "✗ hub")
}

func TestFormats(t *testing.T) {
	value := map[string]any{"items": []any{map[string]any{"name": "a<b"}}}
	for format, want := range map[Format]string{
		JSON:                        "{\n  \"apiVersion\": \"cli.ocm/v1\",\n  \"items\": [\n    {\n      \"name\": \"a<b\"\n    }\n  ],\n  \"kind\": \"K\"\n}\n",
		YAML:                        "apiVersion: cli.ocm/v1\nitems:\n- name: a<b\nkind: K\n",
		Name:                        "n\n",
		"jsonpath={.items[0].name}": "a<b",
		"go-template={{.kind}}":     "K",
	} {
		u := newUI(nil)
		require.NoError(t, format.Check())
		require.NoError(t, u.Result(format, "K", value, []string{"n"}))
		require.Equal(t, want, u.out.String())
	}
	for _, wrong := range []Format{"yml", "jsonpath={", "go-template={{", "custom"} {
		require.Equal(t, ExitUsage, Code(wrong.Check()))
	}
	u := newUI(nil)
	require.NoError(t, u.Result("jsonpath={.items}", "K", []string(nil), nil))
	require.Equal(t, "[]", u.out.String())
}

// full is a stream that cannot be written to.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestAResultThatCannotBeWrittenIsAFailure(t *testing.T) {
	u := newUI(nil)
	u.Streams.Out = full{}
	u.Say("token")
	require.Equal(t, ExitFailed, u.Fail(nil))
	require.Contains(t, u.err.String(), "no space left on device")
}

func TestWithoutATerminalNobodyIsAsked(t *testing.T) {
	u := newUI(nil)
	require.Equal(t, ExitRefused, Code(u.Confirm(false, "Delete?", []string{"hub: x"})))
	require.Contains(t, u.err.String(), "hub: x")
	require.NoError(t, u.Confirm(true, "Delete?", nil))
}

// TestAQuestionThatIsInterruptedEndsAtOnce: an interrupt does not wait for an answer.
func TestAQuestionThatIsInterruptedEndsAtOnce(t *testing.T) {
	u := newUI(nil)
	in, answer := io.Pipe()
	ctx, interrupt := context.WithCancel(t.Context())
	u.Streams.In, u.Interrupted = in, ctx.Done()
	interrupt()
	err := u.ask("Delete?")
	require.Equal(t, ExitFailed, u.Fail(err))
	require.Equal(t, "Delete? [y/N] \nerror: interrupted\n  cause: you did not answer; nothing was done\n", u.err.String())
	require.NoError(t, answer.Close())
	for text, want := range map[string]int{"y\n": ExitDone, "YES\n": ExitDone, "n\n": ExitRefused, "y": ExitRefused} {
		u := newUI(nil)
		u.Streams.In = strings.NewReader(text)
		require.Equal(t, want, Code(u.ask("Delete?")), text)
	}
}

// TestTablesFitTheTerminal: on a narrow terminal cells are truncated with a mark, then
// columns are left out and named. States and names stay; -o wide shows everything.
func TestTablesFitTheTerminal(t *testing.T) {
	table := Table{Wide: 1, Least: []string{"CPU"}, Heads: []string{"NAME", "CPU", "OWNER", "AGE", "STATUS", "REASON"},
		Rows: [][]string{{"cluster1", "8/12", "replicaset default/everywhere", "5m", "NotAvailableForLong", "wide"}}}
	for width, want := range map[int]struct{ out, err string }{
		0: {"NAME       CPU    OWNER                           AGE   STATUS\n" +
			"cluster1   8/12   replicaset default/everywhere   5m    NotAvailableForLong\n", ""},
		70: {"NAME       CPU    OWNER                      AGE   STATUS\n" +
			"cluster1   8/12   replicaset default/eve..   5m    NotAvailableForLong\n", ""},
		55: {
			"NAME       OWNER              AGE   STATUS\n" +
				"cluster1   replicaset def..   5m    NotAvailableForLong\n",
			"columns not shown for lack of space: CPU; -o wide shows all\n",
		},
		40: {"NAME       STATUS\n" +
			"cluster1   NotAvailableForLong\n", "columns not shown for lack of space: CPU, AGE, OWNER; -o wide shows all\n"},
		10: {"NAME       STATUS\n" +
			"cluster1   NotAvailableForLong\n", "columns not shown for lack of space: CPU, AGE, OWNER; -o wide shows all\n"},
	} {
		for name, show := range map[string]func(*UI) error{
			"list":   func(u *UI) error { return u.List(table, false, false) },
			"report": func(u *UI) error { return u.Report(table, false) },
		} {
			u := newUI(map[string]string{"LANG": "C.UTF-8"})
			u.Streams.Width = width
			require.NoError(t, show(u.UI))
			require.Equal(t, want.out, u.out.String(), "%s at %d", name, width)
			require.Equal(t, want.err, u.err.String(), "%s at %d", name, width)
		}
		u := newUI(nil)
		u.Streams.Width = width
		require.NoError(t, u.List(table, true, false))
		require.Contains(t, u.out.String(), "NotAvailableForLong   wide\n")
	}
}

func TestCells(t *testing.T) {
	now := time.Unix(1000, 0)
	require.Equal(t, "-", Age(metav1.Time{}, now))
	require.Equal(t, "16m", Age(metav1.NewTime(time.Unix(1, 0)), now))
	require.Equal(t, "0s", Age(metav1.NewTime(time.Unix(2000, 0)), now), "the clock of another machine is ahead")
	require.Equal(t, "-", Ratio(0, 0))
	require.Equal(t, "1/2", Ratio(1, 2))
	require.Equal(t, "ab\x1b[0m", cut("ab\x1b[0mcd", 2))
}

func TestUTF8IsReadFromTheLocale(t *testing.T) {
	for env, want := range map[string]bool{"C.UTF-8": true, "de_DE.utf8": true, "POSIX": false, "": false} {
		require.Equal(t, want, newUI(map[string]string{"LANG": env}).Streams.utf8())
	}
	require.False(t, newUI(map[string]string{"LC_ALL": "C", "LANG": "C.UTF-8"}).Streams.utf8())
}

func TestOnlyCellsThatNameAStateAreTinted(t *testing.T) {
	red := func(word string) string { return paint(true, bad, word) }
	for name, tc := range map[string]struct{ line, want string }{
		"the first word": {
			"a-b c-d   failed since 3m   -",
			"a-b c-d   " + red("failed") + " since 3m   " + paint(true, dim, "-"),
		},
		"as the printer cut it": {"a-b c-d   fail..", "a-b c-d   fail.."},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, tint(tc.line, []string{"a-b c-d", "", "failed since 3m", "-"}))
		})
	}
}

// TestTextControlsNoTerminal: what a server or an object says is shown, not obeyed.
func TestTextControlsNoTerminal(t *testing.T) {
	const hostile = "a\x1b]0;b\x07c\u009bd"
	var out, errs bytes.Buffer
	u := &UI{Streams: Streams{Out: &out, Err: &errs, Clock: clocktesting.NewFakeClock(time.Unix(0, 0)), Getenv: func(string) string { return "" }}}
	u.Note("%s", hostile)
	u.Warn("%s", hostile)
	u.Fail(&fleet.Error{Message: hostile, Cause: hostile + strings.Repeat("x", maxText), Fix: fleet.Advice(hostile)})
	p := u.Progress()
	p.Step(fleet.Step{Name: "step", State: fleet.Done, Detail: hostile})
	p.Close()
	require.NoError(t, u.Report(Table{Heads: []string{"NAME"}, Rows: [][]string{{hostile}}}, true))
	require.NoError(t, u.List(Table{Heads: []string{"NAME"}, Rows: [][]string{{hostile}}}, true, false))
	text := out.String() + errs.String()
	require.NotRegexp(t, "[\x00-\x08\x0b-\x1f\x7f-\u009f]", text)
	require.Equal(t, 8, strings.Count(text, `a\x1b]0;b\ac\u009bd`), text)
	require.Less(t, len(errs.String()), maxText+1000)
}
