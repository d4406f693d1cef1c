// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

const testVersion = "v9.8.7-test.1"

// manifest is the part of a krew manifest that this test reads.
type manifest struct {
	Metadata struct{ Name string }
	Spec     struct {
		Version   string
		Platforms []struct {
			Selector         struct{ MatchLabels map[string]string }
			URI, SHA256, Bin string
		}
	}
}

// build writes a release for this machine's platform into a new folder.
func build(t *testing.T) string {
	t.Helper()
	out := t.TempDir()
	cmd := exec.Command("go", "run", "./tools/release", "-version", testVersion,
		"-platform", runtime.GOOS+"/"+runtime.GOARCH, "-out", out, "-manifest", filepath.Join(out, "ocm.yaml"))
	cmd.Dir = filepath.Join("..", "..")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	return out
}

// entry is one member of an archive.
type entry struct {
	name    string
	regular bool
	mode    os.FileMode
	data    []byte
}

// entries reads an archive by its content, not by its name, as krew does.
func entries(t *testing.T, data []byte) []entry {
	t.Helper()
	if bytes.HasPrefix(data, []byte("PK")) {
		return zipEntries(t, data)
	}
	compressed, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	var all []entry
	for r := tar.NewReader(compressed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		all = append(all, entry{h.Name, h.Typeflag == tar.TypeReg, os.FileMode(h.Mode).Perm(), text})
	}
}

func zipEntries(t *testing.T, data []byte) []entry {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	var all []entry
	for _, f := range r.File {
		part, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(part)
		require.NoError(t, err)
		all = append(all, entry{f.Name, f.Mode().IsRegular(), f.Mode().Perm(), text})
	}
	return all
}

// install does what krew does with a manifest and its archive: checks the
// checksum, unpacks into store/<name>/<version>, and makes one link. It
// returns the folder of the link.
func install(t *testing.T, out string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, "ocm.yaml"))
	require.NoError(t, err)
	var m manifest
	require.NoError(t, yaml.Unmarshal(text, &m))
	require.Len(t, m.Spec.Platforms, 1)
	p := m.Spec.Platforms[0]
	require.Equal(t, map[string]string{"os": runtime.GOOS, "arch": runtime.GOARCH}, p.Selector.MatchLabels)

	data, err := os.ReadFile(filepath.Join(out, path.Base(p.URI)))
	require.NoError(t, err)
	sum := sha256.Sum256(data)
	require.Equal(t, p.SHA256, hex.EncodeToString(sum[:]))
	checksums, err := os.ReadFile(filepath.Join(out, "checksums.txt"))
	require.NoError(t, err)
	require.Contains(t, string(checksums), p.SHA256+"  "+path.Base(p.URI)+"\n")
	sbom, err := os.ReadFile(filepath.Join(out, path.Base(p.URI)+".cdx.json"))
	require.NoError(t, err)
	sum = sha256.Sum256(sbom)
	require.Contains(t, string(checksums), hex.EncodeToString(sum[:])+"  "+path.Base(p.URI)+".cdx.json\n")
	require.Contains(t, string(sbom), `"pkg:golang/github.com/spf13/cobra@v`)

	root := t.TempDir()
	store := filepath.Join(root, "store", m.Metadata.Name, m.Spec.Version)
	has := map[string]bool{}
	for _, e := range entries(t, data) {
		require.True(t, e.regular, "krew takes only regular files and folders: %s", e.name)
		require.True(t, filepath.IsLocal(e.name), "a path outside the archive: %s", e.name)
		has[e.name] = true
		file := filepath.Join(store, filepath.FromSlash(e.name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, e.data, e.mode))
	}
	require.True(t, has["LICENSE"], "the archive holds no LICENSE")
	if runtime.GOOS == "linux" {
		require.True(t, has["ocm-hub"] && has["ocm-agent"], "the archive holds no programs for dev up")
	}

	bin := filepath.Join(root, "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	link := "kubectl-" + strings.ReplaceAll(m.Metadata.Name, "-", "_")
	require.NoError(t, os.Symlink(filepath.Join(store, filepath.FromSlash(p.Bin)), filepath.Join(bin, link)))
	return bin
}

// kubectl runs the real kubectl with nothing but one folder on its path.
func kubectl(t *testing.T, bin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	found, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	cmd := exec.Command(found.Kubectl, args...)
	home := t.TempDir()
	cmd.Env = []string{"PATH=" + bin, "HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "none")}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

func TestRelease(t *testing.T) {
	out := build(t)
	t.Run("the archive installed as krew does runs through kubectl", func(t *testing.T) { runs(t, install(t, out)) })
	t.Run("a second build gives the same bytes", func(t *testing.T) { same(t, out, build(t)) })
}

func runs(t *testing.T, bin string) {
	t.Helper()
	stdout, stderr, err := kubectl(t, bin, "plugin", "list", "--name-only")
	require.NoError(t, err, stderr)
	require.Equal(t, "kubectl-ocm\n", lastLine(stdout))

	stdout, stderr, err = kubectl(t, bin, "ocm", "version", "--client")
	require.NoError(t, err, stderr)
	require.Contains(t, stdout, testVersion)

	stdout, stderr, err = kubectl(t, bin, "ocm", "version", "--client", "-o", "json")
	require.NoError(t, err, stderr)
	require.Contains(t, stdout, `"`+testVersion+`"`)

	stdout, _, err = kubectl(t, bin, "ocm", "--help")
	require.NoError(t, err)
	require.Contains(t, stdout, "kubectl ocm ", "usage must read as the words that were typed")
	require.NotContains(t, stdout, "kubectl-ocm ")

	_, stderr, err = kubectl(t, bin, "ocm", "no-such-command")
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 2, exit.ExitCode(), "kubectl passes the plugin's exit code on: %s", stderr)
}

func same(t *testing.T, first, second string) {
	t.Helper()
	names, err := os.ReadDir(first)
	require.NoError(t, err)
	require.Len(t, names, 4)
	for _, n := range names {
		a, err := os.ReadFile(filepath.Join(first, n.Name()))
		require.NoError(t, err)
		b, err := os.ReadFile(filepath.Join(second, n.Name()))
		require.NoError(t, err)
		require.True(t, bytes.Equal(a, b), "%s differs", n.Name())
	}
}

func lastLine(text string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	return lines[len(lines)-1] + "\n"
}
