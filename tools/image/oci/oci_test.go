// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/tools/image/oci"
)

// fixture is a small program that prints a stamped version.
const fixture = "./testdata/program"

func config(t *testing.T) oci.Config {
	return oci.Config{
		Repository: "registry.example/team",
		Version:    "v1.2.3",
		Out:        t.TempDir(),
		Platforms:  oci.DefaultPlatforms(),
	}
}

func TestTwoBuildsGiveTheSameBytes(t *testing.T) {
	ctx := context.Background()
	var bodies [2][]byte
	for i := range bodies {
		c := config(t)
		c.Dir = t.TempDir() // the folder that the build runs in must not show
		require.NoError(t, os.CopyFS(c.Dir, os.DirFS("testdata/program")))
		require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "go.mod"), []byte("module example.com/program\n\ngo 1.26\n"), 0o600))
		archive, err := oci.Build(ctx, c, oci.Image{Name: "program", Package: "."})
		require.NoError(t, err)
		bodies[i], err = os.ReadFile(archive.Path)
		require.NoError(t, err)
		require.Equal(t, int64(len(bodies[i])), archive.Size)
		left, err := os.ReadDir(c.Out)
		require.NoError(t, err)
		require.Len(t, left, 1, "nothing but the archive may stay in the output folder")
	}
	require.True(t, bytes.Equal(bodies[0], bodies[1]), "two builds of one source differ")
}

func TestArchiveHoldsOneIndexOfRunnableImages(t *testing.T) {
	c := config(t)
	archive, err := oci.Build(context.Background(), c, oci.Image{Name: "program", Package: fixture})
	require.NoError(t, err)
	require.Equal(t, "registry.example/team/program:v1.2.3", archive.Reference)

	index := open(t, archive.Path)
	require.NoError(t, validate.Index(index), "digests and sizes fit")
	top, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, top.Manifests, 1)
	require.Equal(t, archive.Digest, top.Manifests[0].Digest)
	require.Equal(t, map[string]string{
		"io.containerd.image.name":          "registry.example/team/program:v1.2.3",
		"org.opencontainers.image.ref.name": "v1.2.3",
	}, top.Manifests[0].Annotations)

	nested, err := index.ImageIndex(archive.Digest)
	require.NoError(t, err)
	platforms, err := nested.IndexManifest()
	require.NoError(t, err)
	require.Len(t, platforms.Manifests, 2)
	for i, want := range c.Platforms {
		require.Equal(t, want, platforms.Manifests[i].Platform.String())
		image, err := nested.Image(platforms.Manifests[i].Digest)
		require.NoError(t, err)
		checkConfig(t, image, want)
		checkFiles(t, image, want)
	}
}

func checkConfig(t *testing.T, image v1.Image, platform string) {
	file, err := image.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, platform, file.OS+"/"+file.Architecture)
	require.Equal(t, "65532:65532", file.Config.User)
	require.Equal(t, []string{"/program"}, file.Config.Entrypoint)
	require.Empty(t, file.Config.Cmd)
	require.Equal(t, "v1.2.3", file.Config.Labels["org.opencontainers.image.version"])
	require.Zero(t, file.Created.Unix())
}

func checkFiles(t *testing.T, image v1.Image, platform string) {
	files := map[string]*tar.Header{}
	bodies := map[string][]byte{}
	content := mutate.Extract(image)
	defer content.Close()
	reader := tar.NewReader(content)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		name := strings.TrimSuffix(header.Name, "/")
		files[name] = header
		bodies[name], err = io.ReadAll(reader)
		require.NoError(t, err)
		require.Zero(t, header.Uid)
		require.Zero(t, header.ModTime.Unix(), name)
	}
	require.EqualValues(t, 0o1777, files["tmp"].Mode)
	require.EqualValues(t, 0o755, files["program"].Mode)
	require.Contains(t, string(bodies["etc/passwd"]), "nonroot:x:65532:65532:")

	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(bodies["etc/ssl/certs/ca-certificates.crt"]), "CA roots can be read")

	program, err := elf.NewFile(bytes.NewReader(bodies["program"]))
	require.NoError(t, err)
	require.Equal(t, map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}[platform], program.Machine)
	libraries, err := program.ImportedLibraries()
	require.NoError(t, err)
	require.Empty(t, libraries, "an image from scratch has no libraries")
	info, err := buildinfo.Read(bytes.NewReader(bodies["program"]))
	require.NoError(t, err)
	for _, setting := range info.Settings {
		require.NotContains(t, setting.Key, "vcs", "version control state would change the bytes")
	}
}

func TestFailedBuildLeavesTheOldArchive(t *testing.T) {
	for name, tc := range map[string]struct{ pkg, want string }{
		"package that does not exist": {"./testdata/absent", "directory not found"},
		"package that is no program":  {".", "it is not a main package"},
	} {
		t.Run(name, func(t *testing.T) {
			c := config(t)
			c.Platforms = []string{"linux/amd64"}
			path := filepath.Join(c.Out, "program.tar")
			require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
			_, err := oci.Build(context.Background(), c, oci.Image{Name: "program", Package: tc.pkg})
			require.ErrorContains(t, err, tc.want)
			body, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, "old", string(body))
		})
	}
}

func TestRootfsIsWhatTheImageHolds(t *testing.T) {
	c := config(t)
	c.Platforms = []string{"linux/arm64"}
	dir := t.TempDir()
	require.NoError(t, oci.WriteRootfs(context.Background(), c, oci.Image{Name: "program", Package: fixture}, dir))
	info, err := os.Stat(filepath.Join(dir, "program"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), info.Mode())
	info, err = os.Stat(filepath.Join(dir, "tmp"))
	require.NoError(t, err)
	require.Equal(t, os.ModeDir|os.ModeSticky|0o777, info.Mode())
	require.FileExists(t, filepath.Join(dir, "etc/ssl/certs/ca-certificates.crt"))
}

// open unpacks an archive and reads its layout.
func open(t *testing.T, archive string) v1.ImageIndex {
	file, err := os.Open(archive)
	require.NoError(t, err)
	defer file.Close()
	dir := t.TempDir()
	reader := tar.NewReader(file)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		path := filepath.Join(dir, header.Name)
		if header.Typeflag == tar.TypeDir {
			require.NoError(t, os.MkdirAll(path, 0o755))
			continue
		}
		body, err := io.ReadAll(reader)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, body, 0o600))
	}
	index, err := layout.ImageIndexFromPath(dir)
	require.NoError(t, err)
	return index
}
