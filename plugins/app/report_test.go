// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/apitest"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/goldentest"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// The page of a fixed fleet loads nothing, runs nothing, and has every plot as text.
func TestThePageOfAFleet(t *testing.T) {
	s := newAddOnsScene(t)
	path := filepath.Join(t.TempDir(), "fleet.html")
	got := s.run("report", "-f", path, "--context", "hub")
	require.Zero(t, got.code, got.err)
	require.Empty(t, got.out)
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	text := s.stable(string(page))
	goldentest.Compare(t, "golden/report-page", text)
	for _, never := range []string{"<script", "<link", "<img", "<iframe", "src=", "@import", "javascript:"} {
		require.NotContains(t, text, never)
	}
	require.Equal(t, strings.Count(text, `<svg role="img"`), strings.Count(text, `viewBox="0 0 1000 60" aria-label="`))
	require.Empty(t, s.hub.Changes())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	again := s.run("report", "-f", path, "--context", "hub")
	require.Equal(t, 6, again.code)
	require.Contains(t, again.err, "a report overwrites nothing")
	require.Equal(t, text, s.run("report", "--context", "hub").out)
	require.Equal(t, 2, s.run("report", "-f", "x.html", "-o", "json", "--context", "hub").code)
}

// Whatever objects say cannot become markup, and what looks like a token is left out.
func TestAPageShowsHostileTextAsText(t *testing.T) {
	s := newScene(t)
	fleet, err := os.ReadFile("testdata/fleet.yaml")
	require.NoError(t, err)
	const hostile = `</td><script>alert(1)</script>" onload="x" Bearer abc.def-123`
	s.hub = apitest.New(t, created, string(fleet)+"---\napiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n"+
		"metadata: {name: hostile, labels: {cluster.open-cluster-management.io/clusterset: '<b>set</b>'}}\nspec: {hubAcceptsClient: true}\n"+
		"status: {version: {kubernetes: '<svg onload=x>'}, conditions: [{type: ManagedClusterJoined, status: 'True'}, "+
		"{type: ManagedClusterConditionAvailable, status: Unknown, message: '"+hostile+"'}]}\n")
	t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"hub": s.hub}))
	for _, words := range [][]string{{"report", "--context", "hub"}, {"report", "-o", "json", "--context", "hub"}} {
		got := s.run(words...)
		require.Zero(t, got.code, got.err)
		require.Contains(t, got.out, "hostile")
		require.NotContains(t, got.out, "abc.def-123")
		if len(words) == 3 {
			require.Contains(t, got.out, "&lt;script&gt;alert(1)&lt;/script&gt;&#34; onload=&#34;x&#34;")
			require.Contains(t, got.out, "&lt;b&gt;set&lt;/b&gt;")
			for _, never := range []string{"<script", "<b>", "<svg onload"} {
				require.NotContains(t, got.out, never)
			}
		}
	}
}

// TestFindingsForCodeScanners: each finding is a result whose rule exists, with its place.
func TestFindingsForCodeScanners(t *testing.T) {
	got := newScene(t).run("check", "--context", "hub", "-o", "sarif", "-q")
	require.Equal(t, ui.ExitFindings, got.code, got.err)
	require.Empty(t, got.err)
	type message struct{ Text string }
	var file struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct {
					Name  string
					Rules []struct {
						ID                                      string
						ShortDescription, FullDescription, Help message
					}
				}
			}
			Results []struct {
				RuleID, Level string
				Message       message
				Locations     []struct {
					LogicalLocations []struct{ FullyQualifiedName string }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &file))
	require.Equal(t, "2.1.0", file.Version)
	require.Len(t, file.Runs, 1)
	rules := map[string]bool{}
	for _, rule := range file.Runs[0].Tool.Driver.Rules {
		rules[rule.ID] = true
		require.NotEmpty(t, rule.ShortDescription.Text)
		require.NotEmpty(t, rule.FullDescription.Text)
		require.NotEmpty(t, rule.Help.Text)
	}
	late := false
	for _, result := range file.Runs[0].Results {
		require.Contains(t, rules, result.RuleID)
		require.Contains(t, []string{"warning", "error"}, result.Level)
		require.NotEmpty(t, result.Message.Text)
		late = late || result.RuleID == "OCM0304" && result.Locations[0].LogicalLocations[0].FullyQualifiedName == "cluster cluster2"
	}
	require.True(t, late, "the cluster that does not report")
}

// TestManifestsAreJudgedBeforeTheyAreSent: nothing is stored, and each mistake is a finding.
func TestManifestsAreJudgedBeforeTheyAreSent(t *testing.T) {
	const placement = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: new}\n"
	for name, tc := range map[string]struct {
		text string
		code int
		want string
	}{
		"well":         {manifest + "---\n" + placement, ui.ExitDone, "the hub takes Placement default/new"},
		"twice":        {manifest + "---\n" + manifest, ui.ExitFindings, "OCM0601 ConfigMap default/greeting appears twice"},
		"no name":      {"apiVersion: v1\nkind: ConfigMap\n", ui.ExitFindings, "OCM0601"},
		"not YAML":     {"a: [b", ui.ExitFindings, "OCM0601"},
		"no such kind": {"apiVersion: v1\nmetadata: {name: x}\n", ui.ExitFindings, "OCM0601"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			got := s.runIn(tc.text, "check", "-f", "-", "--context", "hub")
			require.Equal(t, tc.code, got.code, got.out+got.err)
			require.Contains(t, got.out, tc.want)
			require.Empty(t, s.hub.Changes())
		})
	}
	require.Equal(t, ui.ExitUsage, newScene(t).run("check", "hub", "-f", "-", "--context", "hub").code)
	require.Equal(t, ui.ExitFailed, newScene(t).runIn(manifest, "check", "-f", "-", "--context", "spoke").code)
}

// TestAReportOfAThousandClustersSendsNoMoreRequests: what it costs the hub does not grow with the
// fleet.
func TestAReportOfAThousandClustersSendsNoMoreRequests(t *testing.T) {
	fleet, err := os.ReadFile("testdata/fleet.yaml")
	require.NoError(t, err)
	requests := func(more int) int {
		documents := []string{string(fleet)}
		for i := range more {
			documents = append(documents, fmt.Sprintf("apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n"+
				"metadata: {name: more-%04d}\nspec: {hubAcceptsClient: true}\n", i))
		}
		s := newScene(t)
		s.hub = apitest.New(t, created, documents...)
		t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"hub": s.hub}))
		got := s.run("report", "--context", "hub")
		require.Zero(t, got.code, got.err)
		return s.hub.Requests()
	}
	few := requests(0)
	require.Less(t, few, 80, "most are probes of the hub, not lists")
	require.Less(t, requests(1000), few+10, "none is sent for a cluster of its own; which probes are repeated differs")
}
