// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// lines has a valid command line for every command with --dry-run.
var lines = map[string][]string{
	"hub init":             {"--context", "spoke"},
	"hub upgrade":          {"--version", "v0.2.0", "--context", "hub"},
	"hub token":            {"--context", "hub"},
	"hub token create":     {"--context", "hub"},
	"hub token revoke":     {"abc123", "--context", "hub", "--yes"},
	"hub restore":          {"testdata/hub.jsonl", "--merge", "--context", "hub"},
	"hub clean":            {"--context", "hub", "--force", "--yes"},
	"join":                 {"cluster4", "--context", "spoke", "--hub-context", "hub", "--accept"},
	"accept":               {"cluster1", "--context", "hub"},
	"cluster label":        {"cluster1", "env=test", "tier-", "--overwrite", "--context", "hub"},
	"cluster taint":        {"cluster1", "gpu=true:NoSelect", "--context", "hub"},
	"cluster cordon":       {"cluster1", "--context", "hub"},
	"cluster uncordon":     {"cluster1", "--context", "hub"},
	"cluster deny":         {"cluster1", "cluster2", "--context", "hub", "--yes"},
	"cluster remove":       {"cluster3", "--context", "hub", "--yes", "--force"},
	"clusterset create":    {"test", "--context", "hub"},
	"clusterset add":       {"prod", "-c", "cluster3", "--context", "hub"},
	"clusterset drop":      {"prod", "-c", "cluster1", "--context", "hub", "--yes"},
	"clusterset bind":      {"prod", "-n", "default", "--context", "hub"},
	"clusterset unbind":    {"eu", "-n", "shop", "--context", "hub", "--yes"},
	"clusterset delete":    {"eu", "--unbind", "--context", "hub", "--yes"},
	"placement create":     {"new", "--count", "1", "--context", "hub"},
	"placement delete":     {"shop/web", "--context", "hub", "--yes"},
	"unjoin":               {"cluster3", "--context", "spoke", "--hub-context", "hub", "--yes", "--force"},
	"work apply":           {"hello", "-f", "-", "-c", "cluster1,cluster2", "--context", "hub", "--wait"},
	"work delete":          {"web", "-c", "cluster1", "--context", "hub", "--yes"},
	"addon enable":         {"hello", "-c", "cluster1,cluster2", "--set", "A=b", "--context", "hub", "--wait"},
	"addon disable":        {"hello", "-c", "cluster1", "--context", "hub", "--yes"},
	"addon resume":         {"fleetd", "--context", "hub"},
	"addon create":         {"other", "-f", "-", "--registration", "csr", "--context", "hub"},
	"addon delete":         {"hello", "--context", "hub", "--yes"},
	"dev up":               {"--clusters", "3"},
	"dev down":             {},
	"completion install":   {"--dir", "."},
	"completion uninstall": {"--dir", "."},
}

// changing adds the paths of all commands with --dry-run to the map into.
func changing(cmd *cobra.Command, path string, into map[string]bool) {
	for _, c := range cmd.Commands() {
		below := path + c.Name()
		if c.Flags().Lookup("dry-run") != nil {
			into[below] = true
		}
		changing(c, below+" ", into)
	}
}

func words(path string) []string {
	var out []string
	word := ""
	for _, r := range path + " " {
		if r == ' ' {
			out, word = append(out, word), ""
		} else {
			word += string(r)
		}
	}
	return out
}

// TestNoDryRunWritesAnything walks the whole command tree: every command that can change
// something has --dry-run, and with it sends no request that would change anything.
func TestNoDryRunWritesAnything(t *testing.T) {
	found := map[string]bool{}
	changing(app.Root(&ui.UI{Streams: ui.Process(), Program: "kubectl ocm"}), "", found)
	for path := range found {
		require.Contains(t, lines, path, "a command with --dry-run needs a line here")
	}
	for path, flags := range lines {
		require.True(t, found[path], "%s has no --dry-run", path)
		if words(path)[0] == "completion" {
			continue
		}
		for _, dry := range []string{"--dry-run", "--dry-run=client", "--dry-run=server", "--dry-run=true"} {
			t.Run(path+" "+dry, func(t *testing.T) {
				s := newScene(t)
				got := s.runIn(manifest, append(append(words(path), flags...), dry)...)
				require.Zero(t, got.code, got.err)
				require.Empty(t, s.hub.Changes())
				require.Empty(t, s.spoke.Changes())
				require.NotEmpty(t, got.out+got.err)
				require.NotRegexp(t, `(?m)^data:(\n  .*)*\nkind: Secret$`, got.out, "a Secret without its values would be applied empty")
			})
		}
	}
}

// TestJSONIsAllThatIsPrinted runs every command with -o json -q: stdout parses,
// stderr is empty.
func TestJSONIsAllThatIsPrinted(t *testing.T) {
	all := map[string][]string{
		"cluster list":    {"--context", "hub"},
		"clusterset list": {"--context", "hub"},
		"work list":       {"--context", "hub"},
		"hub status":      {"--context", "hub"},
		"hub token list":  {"--context", "hub"},
		"accept":          {"--show", "--context", "hub"},
		"version":         {"--context", "hub"},
		"hub init":        {"--list-images"},
		"check":           {"--list"},
	}
	for path, flags := range lines {
		if words(path)[0] != "completion" {
			all[path+" --dry-run"] = flags
		}
	}
	all["work apply"] = []string{"hello", "-f", "-", "-c", "cluster1", "--context", "hub"}
	all["hub token"] = lines["hub token"]
	all["work tree"] = []string{"web", "--context", "hub"}
	all["work tree --all"] = []string{"--context", "hub"}
	all["placement list"] = []string{"--context", "hub"}
	all["placement explain"] = []string{"shop/web", "--context", "hub"}
	all["cluster get"] = []string{"cluster1", "--context", "hub"}
	all["cluster tree"] = []string{"cluster1", "cluster2", "--context", "hub"}
	all["addon list"] = []string{"--context", "hub"}
	all["addon status"] = []string{"hello", "--context", "hub"}
	all["work wait"] = []string{"web", "-c", "cluster1", "--context", "hub"}
	all["report"] = []string{"--context", "hub"}
	all["dev status"] = nil
	all["work list --sets"] = []string{"--context", "hub"}
	for path, flags := range all {
		t.Run(path, func(t *testing.T) {
			got := newScene(t).runIn(manifest, append(append(words(path), flags...), "-o", "json", "-q")...)
			require.Zero(t, got.code, got.err)
			var document map[string]any
			require.NoError(t, json.Unmarshal([]byte(got.out), &document), got.out)
			require.Equal(t, "cli.ocm/v1", document["apiVersion"])
			require.NotEmpty(t, document["kind"])
			require.Empty(t, got.err)
		})
	}
}
