// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/proxy"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// The bounds of a run on several clusters: how many at the same time, and how much all of them read from the standard
// input, in bytes.
const (
	inParallel = 16
	maxInput   = 32 << 20
)

// answer is what kubectl said on one cluster.
type answer struct {
	cluster  string
	code     int
	out, err bytes.Buffer
	// why the cluster cannot be reached, if that is why kubectl failed.
	why error
}

// several runs kubectl on each of the clusters, and joins what it says.
func (o *KubectlOptions) several(ctx context.Context, hub *fleet.Cluster, k *kubectl, clusters []string) error {
	input, err := o.input()
	if err != nil {
		return err
	}
	words, format := documents(o.Words)
	answers := make([]answer, len(clusters))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(inParallel)
	for i, name := range clusters {
		group.Go(func() (err error) {
			a := &answers[i]
			a.cluster = name
			a.code, err = k.run(inner, name, words, ui.Streams{In: bytes.NewReader(input), Out: &a.out, Err: &a.err, Clock: o.f.UI.Streams.Clock})
			if err == nil && a.code != 0 {
				a.why = proxy.Reach(inner, hub, o.way(name))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return o.tell(answers, format)
}

// input reads what all clusters are sent, if kubectl is to read it.
func (o *KubectlOptions) input() ([]byte, error) {
	for i, word := range o.Words {
		name, value, with := strings.Cut(word, "=")
		if !with && i+1 < len(o.Words) {
			value = o.Words[i+1]
		}
		if word != "-f-" && ((name != "-f" && name != "--filename") || value != "-") {
			continue
		}
		input, err := io.ReadAll(io.LimitReader(o.f.UI.Streams.In, maxInput+1))
		switch {
		case err != nil:
			return nil, fmt.Errorf("reading the standard input: %w", err)
		case len(input) > maxInput:
			return nil, options.Usage("the standard input is longer than 32 MiB", "name a file by -f, or one cluster by -c")
		}
		return input, nil
	}
	return nil, nil
}

// tell prints the answers of all clusters.
func (o *KubectlOptions) tell(answers []answer, format ui.Format) error {
	u := o.f.UI
	var failed []string
	for i := range answers {
		a := &answers[i]
		if a.code != 0 {
			failed = append(failed, a.cluster)
		}
		a.complain(u)
	}
	var err error
	switch {
	case format != "":
		err = printList(u, answers, format)
	case isTable(o.Words):
		err = printTables(u, answers)
	default:
		printLines(u, answers)
	}
	if err != nil || len(failed) == 0 {
		return err
	}
	u.Note("failed on %d of %s: %s", len(failed), ui.Many(len(answers), "cluster"), fleet.Listed(failed))
	return ui.Exit(ui.ExitFindings)
}

// complain prints what went wrong on a cluster, or what kubectl remarked.
func (a *answer) complain(u *ui.UI) {
	var e *fleet.Error
	if errors.As(a.why, &e) {
		line := a.cluster + ": " + e.Error()
		if fix := ui.Fix(e.Fix); fix != "" {
			line += "; " + u.Own(fix)
		}
		u.Complain(line)
		return
	}
	for line := range strings.Lines(a.err.String()) {
		u.Complain(a.cluster + ": " + strings.TrimRight(line, "\n"))
	}
}

// printLines prints the lines of all clusters, each after the name of its cluster.
func printLines(u *ui.UI, answers []answer) {
	width := 0
	for i := range answers {
		width = max(width, len(answers[i].cluster))
	}
	for i := range answers {
		for line := range strings.Lines(answers[i].out.String()) {
			u.Say("%s", strings.TrimRight(fmt.Sprintf("%-*s   %s", width, answers[i].cluster, strings.TrimRight(line, "\n")), " "))
		}
	}
}

// isTable reports whether kubectl prints tables with heads.
func isTable(words []string) bool {
	if !slices.Contains([]string{"get", "top", "events", "api-resources"}, verbOf(words)) {
		return false
	}
	for i, word := range words {
		name, value, with := strings.Cut(word, "=")
		switch {
		case name == "--no-headers":
			return false
		case (name == "-o" || name == "--output") && !with && i+1 < len(words):
			value = words[i+1]
			fallthrough
		case name == "-o" || name == "--output":
			if value != "wide" && !strings.HasPrefix(value, "custom-columns") {
				return false
			}
		case strings.HasPrefix(word, "-o") && word != "-owide":
			return false
		}
	}
	return true
}

// printTables prints the tables of all clusters, those with the same heads as one.
func printTables(u *ui.UI, answers []answer) error {
	var all []ui.Table
	for i := range answers {
		for _, t := range tablesOf(answers[i].out.String()) {
			for r := range t.Rows {
				t.Rows[r] = append([]string{answers[i].cluster}, t.Rows[r]...)
			}
			t.Heads = append([]string{"CLUSTER"}, t.Heads...)
			at := slices.IndexFunc(all, func(known ui.Table) bool { return slices.Equal(known.Heads, t.Heads) })
			if at < 0 {
				all = append(all, t)
				continue
			}
			all[at].Rows = append(all[at].Rows, t.Rows...)
		}
	}
	for i, t := range all {
		if i > 0 {
			u.Say("")
		}
		if err := u.List(t, true, false); err != nil {
			return err
		}
	}
	return nil
}

// tablesOf splits what kubectl prints into its tables. Columns begin where their heads do.
func tablesOf(text string) (out []ui.Table) {
	for block := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(strings.Trim(block, "\n"), "\n")
		if lines[0] == "" {
			continue
		}
		starts := columns(lines[0])
		t := ui.Table{Heads: cells(lines[0], starts)}
		for _, line := range lines[1:] {
			t.Rows = append(t.Rows, cells(line, starts))
		}
		out = append(out, t)
	}
	return out
}

// columns returns where columns begin: after two spaces or more.
func columns(heads string) []int {
	var out []int
	spaces := 2
	for i, r := range []rune(heads) {
		switch {
		case r == ' ':
			spaces++
			continue
		case spaces >= 2:
			out = append(out, i)
		}
		spaces = 0
	}
	return out
}

// cells cuts a line where columns begin.
func cells(line string, starts []int) []string {
	text := []rune(line)
	out := make([]string, len(starts))
	for i, from := range starts {
		to := len(text)
		if i+1 < len(starts) {
			to = min(to, starts[i+1])
		}
		if from < to {
			out[i] = strings.TrimSpace(string(text[from:to]))
		}
	}
	return out
}
