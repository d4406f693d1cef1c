// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/browser"
)

// pictures is where pictures of pages stay after the suite.
const pictures = root + "/bin/pictures"

// views are the ways in which people look at a page: a screen, a telephone, without colours, and
// with the colours of their own.
var views = map[string]browser.View{
	"screen": {Width: 1280}, "telephone": {Width: 480}, "grey": {Width: 1280, Grey: true}, "forced-colors": {Width: 480, Forced: true},
}

// TestThePageOfEveryState shows the page of a fleet in which everything is wrong.
func TestThePageOfEveryState(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join(root, "plugins/app/testdata/golden/report-page.golden"))
	require.NoError(t, err)
	page := text(t, "fleet.html", string(golden))
	b := browser.Start(t)
	for name, view := range views {
		shown := look(t, b, page, "every-state-"+name, view)
		require.Len(t, shown.Text(t, "svg[role=img]"), 5, name)
		require.Contains(t, shown.Text(t, "svg[role=img] text"), "3 undecided", name)
		require.Contains(t, shown.Text(t, "section p"), "8 works: 1 NotAvailable, 1 ApplyFailed, 4 Deleting, 1 Complete, 1 Ready", name)
	}
}

// report compares the page of a fleet, as a browser shows it, with what the same command prints for
// programs.
func (f *fleet) report(t *testing.T) {
	b := browser.Start(t)
	pages := 0
	eventually(t, func() error { // a fleet may change between two reads
		pages++
		page := filepath.Join(f.home, fmt.Sprintf("fleet-%d.html", pages))
		f.ocm(t, "report", "-f", page, "--context", "hub")
		var told told
		require.NoError(t, json.Unmarshal([]byte(f.ocm(t, "report", "-o", "json", "--context", "hub")), &told))
		for name, view := range views {
			shown := look(t, b, page, "fleet-"+name, view)
			if diff := cmp.Diff(told.rows(), rowsOf(t, shown)); diff != "" {
				return fmt.Errorf("%s (-data +page):\n%s", name, diff)
			}
		}
		require.Len(t, told.Clusters, len(f.managed))
		require.NotEmpty(t, told.Placements)
		require.NotEmpty(t, told.Works)
		require.NotEmpty(t, told.AddOns)
		return nil
	})
}

// look opens a page and keeps its picture. The page loads nothing, and nothing is wrong with it.
func look(t *testing.T, b *browser.Browser, page, name string, view browser.View) *browser.Page {
	t.Helper()
	shown := b.Open(t, "file://"+page, view)
	shown.Save(t, filepath.Join(pictures, name+".png"))
	require.Equal(t, []string{"file://" + page}, shown.Requests, name)
	require.Empty(t, shown.Complaints, name)
	require.Empty(t, shown.Flaws(t), name)
	return shown
}

// told is what report prints for programs, as far as it does not change with the time.
type told struct {
	Clusters   []struct{ Name, Status, Set, Version string }
	Placements []struct {
		Namespace, Name, Satisfied string
		Selected                   int
	}
	Works    []struct{ Cluster, Name, State string }
	WorkSets []struct{ Namespace, Name string }
	AddOns   []struct {
		Name, Install      string
		Enabled, Available int
	}
	Check struct {
		Areas []struct {
			Name     string
			Findings []struct{ Code, Severity, Title string }
		}
	}
}

// rows returns the first cells of each row that the page must have, by section.
func (f *told) rows() map[string][][]string {
	out := map[string][][]string{"clusters": nil, "placements": nil, "works": nil, "worksets": nil, "addons": nil, "findings": nil}
	for _, c := range f.Clusters {
		out["clusters"] = append(out["clusters"], []string{c.Name, c.Status, c.Set, c.Version})
	}
	for _, p := range f.Placements {
		out["placements"] = append(out["placements"], []string{p.Namespace, p.Name, p.Satisfied, strconv.Itoa(p.Selected)})
	}
	for _, w := range f.Works {
		out["works"] = append(out["works"], []string{w.Cluster, w.Name, w.State})
	}
	for _, s := range f.WorkSets {
		out["worksets"] = append(out["worksets"], []string{s.Namespace, s.Name})
	}
	for _, a := range f.AddOns {
		out["addons"] = append(out["addons"], []string{a.Name, a.Install, strconv.Itoa(a.Enabled), strconv.Itoa(a.Available)})
	}
	for _, area := range f.Check.Areas {
		out["findings"] = append(out["findings"], []string{area.Name, strconv.Itoa(len(area.Findings))})
	}
	return out
}

// columns is how many columns each section of the page has, and how many of them told.rows names.
var columns = map[string][2]int{"clusters": {8, 4}, "placements": {7, 4}, "works": {7, 3}, "worksets": {6, 2}, "addons": {9, 4}}

// rowsOf returns the same of a page.
func rowsOf(t *testing.T, shown *browser.Page) map[string][][]string {
	t.Helper()
	out := map[string][][]string{"findings": nil}
	for section, of := range columns {
		out[section] = nil
		for row := range slices.Chunk(shown.Text(t, "section[aria-labelledby="+section+"] td"), of[0]) {
			out[section] = append(out[section], row[:of[1]])
		}
	}
	for i, area := range shown.Text(t, "section[aria-labelledby=findings] h3") {
		findings := shown.Text(t, fmt.Sprintf("section[aria-labelledby=findings] ul:nth-of-type(%d) > li", i+1))
		out["findings"] = append(out["findings"], []string{area, strconv.Itoa(len(findings))})
	}
	return out
}
