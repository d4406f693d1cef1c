// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/report"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

//go:embed page.html
var source string

var pages = template.Must(template.New("page").Parse(source))

// page is what the template shows.
type page struct {
	Hub, At  string
	Sections []section
	Areas    []check.Area
	Summary  string
}

// section is a plot with a table below it.
type section struct {
	// ID is the anchor of the section.
	ID, Title string
	Plot      plot
	Heads     []string
	Rows      [][]string
}

// plot is one bar that is divided among the states of things.
type plot struct {
	// Text says in words what the bar shows. It begins with Total, which says of how many things.
	Text, Total string
	Parts       []part
}

// part is the share of one state.
type part struct {
	Name  string
	Count int
	// Tone is good, pending, bad or unknown: each has its own pattern.
	Tone string
	// X and Width are in the units of the bar, which is barLength long; Middle is where Label goes.
	X, Width, Middle int
	// Label is the count with the name of the state, the count alone where the share is too small for
	// both, and empty where it is too small for that.
	Label string
}

// letter is how wide a letter of a label is at most, in the same units.
const letter = 17

// tones are in the order of the parts of a bar.
var tones = []string{"bad", "unknown", "pending", "good"}

// barLength is the length of a bar in units of the drawing.
const barLength = 1000

// tally counts states in the order in which they are named.
type tally struct {
	what  string
	parts []part
}

func (t *tally) add(name, tone string) {
	for i := range t.parts {
		if t.parts[i].Name == name {
			t.parts[i].Count++
			return
		}
	}
	t.parts = append(t.parts, part{Name: name, Tone: tone, Count: 1})
}

// plot lays the parts out.
func (t *tally) plot() plot {
	total := 0
	for _, p := range t.parts {
		total += p.Count
	}
	slices.SortStableFunc(t.parts, func(a, b part) int { return cmp.Compare(slices.Index(tones, a.Tone), slices.Index(tones, b.Tone)) })
	var words []string
	seen := 0
	for i := range t.parts {
		p := &t.parts[i]
		p.X = seen * barLength / total
		seen += p.Count
		p.Width = seen*barLength/total - p.X
		p.Middle = p.X + p.Width/2
		words = append(words, fmt.Sprintf("%d %s", p.Count, p.Name))
		for _, label := range []string{words[i], strconv.Itoa(p.Count)} {
			if p.Label == "" && len(label)*letter <= p.Width {
				p.Label = label
			}
		}
	}
	out := plot{Total: ui.Many(total, t.what), Parts: t.parts}
	out.Text = out.Total
	if len(words) > 0 {
		out.Text += ": " + strings.Join(words, ", ")
	}
	return out
}

// write writes the page of a fleet.
func write(to io.Writer, f *report.Fleet) error {
	p := page{Hub: f.Hub, At: f.At.UTC().Format(time.RFC3339), Areas: f.Check.Areas,
		Summary: fmt.Sprintf("%d ok, %s, %s", f.Check.OK, ui.Many(f.Check.Warnings, "warning"), ui.Many(f.Check.Errors, "error"))}
	p.Sections = []section{clusters(f), placements(f), works(f), workSets(f), addOns(f)}
	return pages.Execute(to, p)
}

func clusters(f *report.Fleet) section {
	s := section{ID: "clusters", Title: "Clusters", Heads: []string{"Name", "Status", "Set", "Version", "Add-ons", "Works", "Age", "Message"}}
	count := tally{what: "cluster"}
	for _, c := range f.Clusters {
		tone := "pending"
		switch c.Status {
		case cluster.Available:
			tone = "good"
		case cluster.Unknown:
			tone = "unknown"
		case cluster.NotAvailable, cluster.Denied:
			tone = "bad"
		}
		count.add(c.Status, tone)
		s.Rows = append(s.Rows, cells(c.Name, c.Status, c.Set, c.Version, ui.Ratio(c.AddOns.Good, c.AddOns.Total), ui.Ratio(c.Works.Good, c.Works.Total),
			ui.Age(c.Created, f.At.Time), c.Message))
	}
	s.Plot = count.plot()
	return s
}

func placements(f *report.Fleet) section {
	s := section{ID: "placements", Title: "Placements", Heads: []string{"Namespace", "Name", "Satisfied", "Selected", "Wanted", "Reason", "Clusters"}}
	count := tally{what: "placement"}
	for i := range f.Placements {
		p := &f.Placements[i]
		wanted := "all"
		if p.Wanted != nil {
			wanted = strconv.Itoa(int(*p.Wanted))
		}
		switch p.Satisfied {
		case "True":
			count.add("satisfied", "good")
		case "False":
			count.add("not satisfied", "bad")
		default:
			count.add("undecided", "unknown")
		}
		s.Rows = append(s.Rows, cells(p.Namespace, p.Name, p.Satisfied, strconv.Itoa(p.Selected), wanted, p.Reason, strings.Join(p.Clusters, ", ")))
	}
	s.Plot = count.plot()
	return s
}

func works(f *report.Fleet) section {
	s := section{ID: "works", Title: "Works", Heads: []string{"Cluster", "Name", "State", "Objects", "Owner", "Age", "Message"}}
	count := tally{what: "work"}
	for i := range f.Works {
		w := &f.Works[i]
		tone := "pending"
		switch {
		case work.Failing(w.State):
			tone = "bad"
		case work.Well(w.State):
			tone = "good"
		}
		count.add(w.State, tone)
		s.Rows = append(s.Rows, cells(w.Cluster, w.Name, w.State, ui.Ratio(w.Objects.Good, w.Objects.Total), w.Owner,
			ui.Age(w.Created, f.At.Time), w.Message))
	}
	s.Plot = count.plot()
	return s
}

func workSets(f *report.Fleet) section {
	s := section{ID: "worksets", Title: "Rollouts of works", Heads: []string{"Namespace", "Name", "Placements", "Rollout", "When", "Message"}}
	count := tally{what: "replica set"}
	for i := range f.Sets {
		w := &f.Sets[i]
		count.add(rolloutState(w.Rollout))
		s.Rows = append(s.Rows, cells(w.Namespace, w.Name, strings.Join(w.Placements, ", "), ui.Bar(w.Rollout),
			ui.When(w.Rollout, f.At.Time), w.Message))
	}
	s.Plot = count.plot()
	return s
}

// rolloutState names the state of a rollout, and its tone.
func rolloutState(r cluster.Rollout) (name, tone string) {
	switch {
	case r.Total == 0:
		return "without clusters", "unknown"
	case r.Complete():
		return "done", "good"
	case r.Failed > 0:
		return "failing", "bad"
	}
	return "under way", "pending"
}

func addOns(f *report.Fleet) section {
	s := section{ID: "addons", Title: "Add-ons", Heads: []string{"Name", "Install", "Enabled", "Available", "Degraded",
		"Unavailable", "Rollout", "When", "Version"}}
	count := tally{what: "add-on"}
	for i := range f.AddOns {
		a := &f.AddOns[i]
		switch {
		case a.Unavailable > 0:
			count.add("unavailable somewhere", "bad")
		case a.Enabled == 0:
			count.add("not enabled", "unknown")
		case a.Available == a.Enabled:
			count.add("available", "good")
		default:
			count.add("not available everywhere", "pending")
		}
		bar, when := "", ""
		if a.Rollout != nil {
			bar, when = ui.Bar(*a.Rollout), ui.When(*a.Rollout, f.At.Time)
		}
		s.Rows = append(s.Rows, cells(a.Name, a.Install, strconv.Itoa(a.Enabled), strconv.Itoa(a.Available), strconv.Itoa(a.Degraded),
			strconv.Itoa(a.Unavailable), bar, when, a.Version))
	}
	s.Plot = count.plot()
	return s
}

// cells returns a row; empty cells are shown as "-".
func cells(texts ...string) []string {
	for i := range texts {
		texts[i] = ui.Dash(texts[i])
	}
	return texts
}
