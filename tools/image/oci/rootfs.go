// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"debug/elf"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// versionVariable is the variable that internal/version prefers over build information.
const versionVariable = "github.com/kubectl-ocm/kubectl-ocm/internal/version.stamped"

// entry is one file or folder of an image, its name relative to the root.
type entry struct {
	name string
	mode fs.FileMode
	body []byte
}

// baseEntries returns the entries of every image besides its program.
func baseEntries() []entry {
	return []entry{
		{name: "etc", mode: fs.ModeDir | 0o755},
		{name: "etc/group", mode: 0o644, body: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: "etc/passwd", mode: 0o644, body: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{name: "etc/ssl", mode: fs.ModeDir | 0o755},
		{name: "etc/ssl/certs", mode: fs.ModeDir | 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, body: roots()},
		{name: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
}

// roots returns the CA roots of the pinned bundle as PEM. Roots that are trusted only for
// certificates issued before some date are omitted, because PEM cannot express that.
func roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}

// compile builds the program of an image for a platform and returns it.
func compile(ctx context.Context, config Config, image Image, platform v1.Platform) ([]byte, error) {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the build: %w", err)
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, image.Name)
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X "+versionVariable+"="+config.Version, "-o", binary, image.Package)
	build.Dir = config.Dir
	// A developer's own build settings must not affect a published binary.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0",
		"GOOS="+platform.OS, "GOARCH="+platform.Architecture)
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling %s for %s: %w\n%s", image.Package, platform, err, bytes.TrimSpace(output))
	}
	program, err := os.ReadFile(binary)
	if err == nil && !bytes.HasPrefix(program, []byte(elf.ELFMAG)) {
		err = errors.New("it is not a main package")
	}
	if err != nil {
		return nil, fmt.Errorf("compiling %s for %s: %w", image.Package, platform, err)
	}
	return program, nil
}

// layerOf packs entries into one compressed layer with fixed times and owners.
func layerOf(entries []entry) (v1.Layer, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, e := range entries {
		if err := writeEntry(archive, e); err != nil {
			return nil, fmt.Errorf("packing %s: %w", e.name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.BestCompression), tarball.WithCompressedCaching)
}

// writeEntry adds one file or folder that belongs to root at the Unix epoch.
func writeEntry(archive *tar.Writer, e entry) error {
	header := &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     e.name,
		Size:     int64(len(e.body)),
		Mode:     int64(e.mode.Perm()),
		ModTime:  time.Unix(0, 0),
		Format:   tar.FormatUSTAR,
	}
	if e.mode.IsDir() {
		header.Typeflag, header.Name = tar.TypeDir, e.name+"/"
	}
	if e.mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(archive, bytes.NewReader(e.body))
	return err
}

// WriteRootfs writes the files of an image for the only platform of config to dir, for a
// container builder to copy onto an empty image.
func WriteRootfs(ctx context.Context, config Config, image Image, dir string) error {
	program, err := compile(ctx, config, image, platformOf(config.Platforms[0]))
	if err != nil {
		return err
	}
	for _, e := range append(baseEntries(), entry{name: image.Name, mode: 0o755, body: program}) {
		path := filepath.Join(dir, e.name)
		if e.mode.IsDir() {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = os.WriteFile(path, e.body, 0o600)
		}
		if err == nil {
			err = os.Chmod(path, e.mode&^fs.ModeDir) // the umask must not affect the image
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}
