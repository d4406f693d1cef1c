// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var update = flag.Bool("update", false, "rewrite testdata/readme.golden")

// passing are the parts of the output that differ between runs or machines.
var passing = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`https://[a-z0-9.-]+:\d+`), "https://ADDRESS"},
	// The hub of the playground is on this machine.
	{
		regexp.MustCompile(`! preflight (.*), 1 warning: https://ADDRESS is only valid on this machine;.*`),
		"✓ preflight $1",
	},
	// A terminal overwrites progress lines.
	{regexp.MustCompile(`(?m)^… .*\n`), ""},
	{regexp.MustCompile(`sha256:[0-9a-f]+`), "sha256:HASH"},
	{regexp.MustCompile(`CSR (\w+)-[a-z0-9]+`), "CSR $1-RANDOM"},
	{regexp.MustCompile(`version v\S+`), "version VERSION"},
	{regexp.MustCompile(`\b\d+ objects`), "N objects"},
	{regexp.MustCompile(`\b(\d+m)?\d+(\.\d+)?(ms|s|m)\b`), "TIME"},
	{regexp.MustCompile(`\b\d+/\d+ +[\d.]+/[\d.]+[GMK]i\b`), "CPU MEMORY"},
	{regexp.MustCompile(` {2,}`), " "},
	{regexp.MustCompile(`(?m) +$`), ""},
	// A work that is available at the first look is not waited for.
	{regexp.MustCompile(`(?m)^✓ \w+ TIME available\n`), ""},
}

// lasting returns the output without those parts; clusters that are waited for together
// are sorted by name.
func lasting(text string) string {
	for _, p := range passing {
		text = p.pattern.ReplaceAllString(text, p.word)
	}
	return regexp.MustCompile(`(?m)(^✓ cluster\d .*\n)+`).ReplaceAllStringFunc(text, func(group string) string {
		lines := slices.Sorted(strings.Lines(group))
		return strings.Join(lines, "")
	})
}

// readme runs the commands of README.md, on a hub and a cluster without any installation:
// those of its first picture, and then the first steps, before which the clusters leave
// and the hub stays. All output is compared with a golden file, and so is the picture.
func readme(t *testing.T, hub, spoke *harness.Cluster) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	golden, err := filepath.Abs("testdata/readme.golden")
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	fresh(t, hub)
	// The names that the page uses; its second cluster is the hub itself.
	contexts(t, map[string]*harness.Cluster{"hub": hub, "cluster1": spoke, "cluster2": hub, "my-hub": hub, "prod1": spoke})
	folder := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(root, "examples"), filepath.Join(folder, "examples")))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "web.yaml"), []byte(configMap), 0o600))

	blocks := regexp.MustCompile("(?s)```\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	picture, steps := blocks[0][1], blocks[len(blocks)-1][1]
	var transcript strings.Builder
	for line := range strings.Lines(picture) {
		line, command := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if strings.HasPrefix(line, "kubectl ocm cluster list ") {
			// A cluster is available before its agent has read its nodes.
			until(t, func() error { return counted(run(t, strings.Fields(line)[2:]...).out) })
		}
		if command {
			transcript.WriteString(entered(t, folder, line))
		}
		if strings.HasPrefix(line, "kubectl ocm join cluster1 ") {
			require.Zero(t, run(t, strings.Fields("join cluster2 --context cluster2 --hub-context hub --accept")...).code)
		}
	}
	require.Empty(t, cmp.Diff(lasting(picture), transcript.String()), "README.md shows (-) what is not printed (+)")
	for _, line := range []string{
		"work delete webdemo -c cluster1,cluster2 --context hub --yes", "unjoin cluster1 --context cluster1 --hub-context hub --yes",
		"unjoin cluster2 --context cluster2 --hub-context hub --yes --force",
	} {
		require.Zero(t, run(t, strings.Fields(line)...).code, line)
	}
	fresh(t, hub)
	for line := range strings.Lines(steps) {
		line, _, _ = strings.Cut(line, " #")
		transcript.WriteString(entered(t, folder, strings.TrimSpace(line)))
	}
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(transcript.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), transcript.String()), "run: go test ./test/integration/fleet -run TestAFleetFromNothingAndBack -update")
}

// counted returns an error while the table shows a cluster without its CPU and memory.
func counted(table string) error {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "cluster") && !strings.Contains(lasting(line), "CPU MEMORY") {
			return fmt.Errorf("its nodes are not known yet: %s", line)
		}
	}
	return nil
}

// entered runs a command line of the page in a folder, which has to succeed, and returns it
// with its visible output.
func entered(t *testing.T, folder, line string) string {
	t.Helper()
	words, ours := strings.CutPrefix(line, "kubectl ocm ")
	require.True(t, ours, line)
	typed := strings.Fields(words)
	switch typed[0] + " " + typed[1] {
	case "unjoin prod1", "hub clean":
		typed = append(typed, "--yes") // there is no terminal for a prompt
	case "work apply":
		typed = append(typed, "--wait") // what comes after it shows the work
	}
	got := run(t, paths(folder, typed)...)
	require.Zero(t, got.code, line)
	return "$ " + line + "\n" + lasting(got.err+got.out)
}

// fresh removes the namespaces that earlier clusters have left, and waits until they are
// gone.
func fresh(t *testing.T, hub *harness.Cluster) {
	t.Helper()
	all := hub.Dynamic(t).Resource(namespaces)
	left := []string{"cluster1", "cluster2", "prod1"}
	for _, name := range left {
		err := all.Delete(t.Context(), name, metav1.DeleteOptions{})
		require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	}
	for _, name := range left {
		absent(t, hub, namespaces, "", name)
	}
}
