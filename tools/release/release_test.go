// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

func somePlatforms(t *testing.T) []platform {
	t.Helper()
	platforms, err := parsePlatforms(strings.Join(allPlatforms, ","))
	require.NoError(t, err)
	return platforms
}

func someAssets(t *testing.T) []asset {
	t.Helper()
	var assets []asset
	for _, p := range somePlatforms(t) {
		assets = append(assets, asset{p, strings.Repeat("0a", 32), strings.Repeat("0b", 32)})
	}
	return assets
}

func TestManifestOfAReleaseIsTakenByKrew(t *testing.T) {
	m := newManifest("v1.2.3", someAssets(t))
	require.Empty(t, m.check("plugins/ocm.yaml"))
	require.Len(t, m.Spec.Platforms, 6)
	require.Equal(t, manifestPlatform{
		Selector: &manifestSelector{MatchLabels: map[string]string{"os": "windows", "arch": "arm64"}},
		URI:      "https://github.com/kubectl-ocm/kubectl-ocm/releases/download/v1.2.3/kubectl-ocm_windows_arm64.zip",
		SHA256:   strings.Repeat("0a", 32),
		Bin:      "kubectl-ocm.exe",
	}, m.Spec.Platforms[5])
}

func TestManifestThatKrewRefuses(t *testing.T) {
	cases := map[string]struct {
		change func(*manifest)
		file   string
		want   string
	}{
		"another API version": {change: func(m *manifest) { m.APIVersion = "v1" }, want: `apiVersion "v1"`},
		"another kind":        {change: func(m *manifest) { m.Kind = "Index" }, want: `kind "Index"`},
		"a name with a dot": {
			change: func(m *manifest) { m.Metadata.Name = "o.cm" },
			file:   "o.cm.yaml",
			want:   "characters other than",
		},
		"a name Windows reserves": {
			change: func(m *manifest) { m.Metadata.Name = "nul" },
			file:   "nul.yaml",
			want:   "reserved on Windows",
		},
		"a file of another name": {
			change: func(*manifest) {},
			file:   "plugins/other.yaml",
			want:   "not the name of the file other.yaml",
		},
		"a version without v": {
			change: func(m *manifest) { m.Spec.Version = "1.2.3" },
			want:   "not a version with a leading v",
		},
		"a version of two parts": {
			change: func(m *manifest) { m.Spec.Version = "v1.2" },
			want:   "not a semantic version",
		},
		"no short description": {change: func(m *manifest) { m.Spec.ShortDescription = "" }, want: "not one line"},
		"a short description long": {
			change: func(m *manifest) { m.Spec.ShortDescription = "a\nb" },
			want:   "not one line",
		},
		"no description": {
			change: func(m *manifest) { m.Spec.Description = "" },
			want:   "spec.description is missing",
		},
		"no platform": {change: func(m *manifest) { m.Spec.Platforms = nil }, want: "spec.platforms is empty"},
		"no selector": {
			change: func(m *manifest) { m.Spec.Platforms[1].Selector = nil },
			want:   "spec.platforms[1].selector is empty",
		},
		"an empty selector": {
			change: func(m *manifest) { m.Spec.Platforms[1].Selector = &manifestSelector{} },
			want:   "spec.platforms[1].selector is empty",
		},
		"a selector by another key": {
			change: func(m *manifest) { m.Spec.Platforms[0].Selector.MatchLabels["libc"] = "musl" }, want: `selector key "libc"`,
		},
		"a selector with an unknown operator": {
			change: func(m *manifest) {
				m.Spec.Platforms[0].Selector.MatchExpressions = []manifestRequirement{{Key: "os", Operator: "Like"}}
			},
			want: `selector operator "Like"`,
		},
		"a platform that krew does not know": {
			change: func(m *manifest) { m.Spec.Platforms[0].Selector.MatchLabels["arch"] = "s390x" }, want: "selects no platform",
		},
		"two entries for one platform": {
			change: func(m *manifest) {
				m.Spec.Platforms[1].Selector = &manifestSelector{MatchExpressions: []manifestRequirement{
					{
						Key:      "os",
						Operator: "In",
						Values:   []string{"linux"},
					},
					{Key: "arch", Operator: "NotIn", Values: []string{"386"}},
				}}
			},
			want: "all select linux/amd64",
		},
		"a file address": {
			change: func(m *manifest) { m.Spec.Platforms[0].URI = "file:///a.tar.gz" },
			want:   "not an HTTP address",
		},
		"an archive of other type": {
			change: func(m *manifest) { m.Spec.Platforms[0].URI = "https://h/a.tar.xz" },
			want:   "neither .tar.gz nor .zip",
		},
		"an upper-case checksum": {
			change: func(m *manifest) { m.Spec.Platforms[0].SHA256 = strings.Repeat("0A", 32) }, want: "lower-case",
		},
		"a short checksum": {change: func(m *manifest) { m.Spec.Platforms[0].SHA256 = "0a" }, want: "64 lower-case"},
		"no program":       {change: func(m *manifest) { m.Spec.Platforms[0].Bin = "" }, want: "not a path inside"},
		"a program outside": {
			change: func(m *manifest) { m.Spec.Platforms[0].Bin = "a/../../kubectl-ocm" },
			want:   "not a path inside",
		},
		"an absolute program": {
			change: func(m *manifest) { m.Spec.Platforms[0].Bin = "/kubectl-ocm" },
			want:   "not a path inside",
		},
		"no .exe on Windows": {
			change: func(m *manifest) { m.Spec.Platforms[4].Bin = "kubectl-ocm" },
			want:   "no .exe for Windows",
		},
		"an empty list of files": {
			change: func(m *manifest) { m.Spec.Platforms[0].Files = []manifestFile{} },
			want:   "files is empty",
		},
		"a file without a target": {
			change: func(m *manifest) { m.Spec.Platforms[0].Files = []manifestFile{{From: "*"}} },
			want:   "files[0] needs from and to",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newManifest("v1.2.3", someAssets(t))
			tc.change(&m)
			file := tc.file
			if file == "" {
				file = "ocm.yaml"
			}
			problems := m.check(file)
			require.NotEmpty(t, problems)
			require.ErrorContains(t, errors.Join(problems...), tc.want)
		})
	}
}

func TestManifestIsWrittenOnlyIfKrewTakesIt(t *testing.T) {
	dir := t.TempDir()
	good := config{Version: "v1.2.3", Manifest: filepath.Join(dir, "plugins", "ocm.yaml")}
	require.NoError(t, writeManifest(good, someAssets(t)))
	text, err := os.ReadFile(good.Manifest)
	require.NoError(t, err)
	var read manifest
	require.NoError(t, yaml.UnmarshalStrict(text, &read))
	require.Empty(t, cmp.Diff(newManifest("v1.2.3", someAssets(t)), read))

	bad := config{Version: "v1.2.3", Manifest: filepath.Join(dir, "other.yaml")}
	require.ErrorContains(t, writeManifest(bad, someAssets(t)), "krew would refuse the manifest")
	require.NoFileExists(t, bad.Manifest)
}

var content = []packed{
	{Name: "kubectl-ocm", Executable: true, Data: []byte("program")},
	{Name: "LICENSE", Data: []byte("terms")},
}

func TestTarHoldsOnlyRegularFilesOfAFixedTime(t *testing.T) {
	data, err := tarred(content)
	require.NoError(t, err)
	again, err := tarred(content)
	require.NoError(t, err)
	require.Equal(t, data, again)

	compressed, err := gzip.NewReader(bytes.NewReader(data))
	require.NoError(t, err)
	require.True(t, compressed.ModTime.IsZero())
	require.Empty(t, compressed.Name)
	r := tar.NewReader(compressed)
	for _, want := range content {
		h, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, want.Name, h.Name)
		require.Equal(t, byte(tar.TypeReg), h.Typeflag)
		require.Equal(t, int64(want.mode()), h.Mode)
		require.True(t, h.ModTime.Equal(fileTime()))
		require.Zero(t, h.Uid+h.Gid)
		require.Empty(t, h.Uname+h.Gname)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, want.Data, text)
	}
	_, err = r.Next()
	require.ErrorIs(t, err, io.EOF)
}

func TestZipHoldsOnlyRegularFilesOfAFixedTime(t *testing.T) {
	data, err := zipped(content)
	require.NoError(t, err)
	again, err := zipped(content)
	require.NoError(t, err)
	require.Equal(t, data, again)

	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	require.Len(t, r.File, len(content))
	for i, want := range content {
		f := r.File[i]
		require.Equal(t, want.Name, f.Name)
		require.Equal(t, want.mode(), f.Mode())
		require.True(t, f.Modified.Equal(fileTime()))
		part, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(part)
		require.NoError(t, err)
		require.Equal(t, want.Data, text)
	}
}

func TestChecksumsAreSortedByName(t *testing.T) {
	text := string(checksums([]asset{
		{platform{"windows", "amd64"}, strings.Repeat("0", 64), strings.Repeat("1", 64)},
		{platform{"darwin", "arm64"}, strings.Repeat("f", 64), strings.Repeat("e", 64)},
	}))
	require.Equal(t, strings.Repeat("f", 64)+"  kubectl-ocm_darwin_arm64.tar.gz\n"+
		strings.Repeat("e", 64)+"  kubectl-ocm_darwin_arm64.tar.gz.cdx.json\n"+
		strings.Repeat("0", 64)+"  kubectl-ocm_windows_amd64.zip\n"+
		strings.Repeat("1", 64)+"  kubectl-ocm_windows_amd64.zip.cdx.json\n", text)
}

func TestWrongArgumentsBuildNothing(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"no version":          {nil, "leading v"},
		"a version without v": {[]string{"-version", "1.2.3"}, "leading v"},
		"an unknown platform": {
			[]string{"-version", "v1.2.3", "-platform", "plan9/amd64"},
			`"plan9/amd64" is none of linux/amd64`,
		},
		"a platform named twice": {
			[]string{"-version", "v1.2.3", "-platform", "linux/amd64,linux/amd64"},
			"given twice",
		},
		"an unknown flag": {[]string{"-upload"}, "not defined"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			var stdout, stderr bytes.Buffer
			code := run(context.Background(), append(tc.args, "-out", out), &stdout, &stderr)
			require.Equal(t, 2, code)
			require.Contains(t, stderr.String(), tc.want)
			require.Empty(t, stdout.String())
			require.NoDirExists(t, out)
		})
	}
}

// TestIndexHoldsThisVersion checks the manifest in the tree, which an index published
// from it would serve.
func TestIndexHoldsThisVersion(t *testing.T) {
	file := filepath.Join("..", "..", "krew-index", "plugins", "ocm.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var m manifest
	require.NoError(t, yaml.UnmarshalStrict(text, &m))
	require.Empty(t, m.check(file))
	version, err := os.ReadFile(filepath.Join("..", "..", "VERSION"))
	require.NoError(t, err)

	require.Equal(t, strings.TrimSpace(string(version)), m.Spec.Version, "run make release")
	for i := range m.Spec.Platforms {
		require.Regexp(t, lowerSHA256, m.Spec.Platforms[i].SHA256)
		m.Spec.Platforms[i].SHA256 = strings.Repeat("0a", 32)
	}
	require.Empty(t, cmp.Diff(newManifest(m.Spec.Version, someAssets(t)), m), "run make release")
}

// TestTheManifestNamesItsCommit: CI builds that commit with that Go and compares.
func TestTheManifestNamesItsCommit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ocm.yaml")
	commit := strings.Repeat("0a", 20)
	require.NoError(t, writeManifest(config{Version: "v1.2.3", Manifest: file, Commit: commit}, someAssets(t)))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(text), "\n")
	require.Equal(t, `# Generated by "make release" from commit `+commit+" with "+runtime.Version()+"; the checksums are of its archives.", first)
	require.Contains(t, origin(""), "from commit none ")
}
