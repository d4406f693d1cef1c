// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Annotations by which importers name the contents of an archive: containerd reads the
// first, all others the second.
const (
	annotationImageName = "io.containerd.image.name"
	annotationRefName   = "org.opencontainers.image.ref.name"
)

// source is the location of the code of every image.
const source = "https://github.com/kubectl-ocm/kubectl-ocm"

// Archive describes an archive that Build wrote.
type Archive struct {
	// Reference is the name under which the archive is imported.
	Reference string
	// Path is the file; its size is in bytes.
	Path string
	Size int64
	// Digest is that of the multi-platform index, by which a pod can pin it.
	Digest v1.Hash
}

// Build compiles an image's program for every platform of config and writes
// <Out>/<Name>.tar. An existing archive is replaced atomically, and stays unchanged if
// anything fails.
func Build(ctx context.Context, config Config, image Image) (Archive, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, name := range config.Platforms {
		platform := platformOf(name)
		program, err := compile(ctx, config, image, platform)
		if err != nil {
			return Archive{}, err
		}
		one, err := assemble(config, image, platform, program)
		if err != nil {
			return Archive{}, fmt.Errorf("assembling %s for %s: %w", image.Name, name, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: one, Descriptor: v1.Descriptor{Platform: &platform},
		})
	}
	archive := Archive{Reference: config.reference(image.Name), Path: filepath.Join(config.Out, image.Name+".tar")}
	var err error
	if archive.Digest, err = index.Digest(); err != nil {
		return Archive{}, fmt.Errorf("computing the digest of %s: %w", image.Name, err)
	}
	if archive.Size, err = writeArchive(archive, config.Version, index); err != nil {
		return Archive{}, fmt.Errorf("writing %s: %w", archive.Path, err)
	}
	return archive, nil
}

// assemble adds a program to the base files and configures how it runs.
func assemble(config Config, image Image, platform v1.Platform, program []byte) (v1.Image, error) {
	base, err := layerOf(baseEntries())
	if err != nil {
		return nil, err
	}
	top, err := layerOf([]entry{{name: image.Name, mode: 0o755, body: program}})
	if err != nil {
		return nil, err
	}
	epoch := v1.Time{Time: time.Unix(0, 0).UTC()}
	out := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	out, err = mutate.Append(out,
		mutate.Addendum{Layer: base, History: v1.History{CreatedBy: "CA roots, user, /tmp", Created: epoch}},
		mutate.Addendum{Layer: top, History: v1.History{CreatedBy: "go build " + image.Name, Created: epoch}})
	if err != nil {
		return nil, err
	}
	file, err := out.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = platform.OS, platform.Architecture, epoch
	file.Config = v1.Config{
		User:       user,
		Entrypoint: []string{"/" + image.Name},
		WorkingDir: "/",
		Env:        []string{"PATH=/", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    image.Name,
			"org.opencontainers.image.version":  config.Version,
			"org.opencontainers.image.source":   source,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(out, file)
}

// writeArchive writes the index as an OCI layout in a tar and returns its size.
func writeArchive(archive Archive, version string, index v1.ImageIndex) (int64, error) {
	if err := os.MkdirAll(filepath.Dir(archive.Path), 0o755); err != nil {
		return 0, err
	}
	work, err := os.MkdirTemp(filepath.Dir(archive.Path), ".image-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	folder := filepath.Join(work, "layout")
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return 0, err
	}
	err = path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		annotationImageName: archive.Reference,
		annotationRefName:   version,
	}))
	if err != nil {
		return 0, err
	}
	packed := filepath.Join(work, "archive.tar")
	if err := pack(folder, packed); err != nil {
		return 0, err
	}
	info, err := os.Stat(packed)
	if err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(packed, archive.Path)
}

// pack writes the files below folder to a tar, sorted by name and at the Unix
// epoch.
func pack(folder, target string) error {
	file, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	archive := tar.NewWriter(file)
	root := os.DirFS(folder)
	err = fs.WalkDir(root, ".", func(name string, item fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if item.IsDir() {
			return writeEntry(archive, entry{name: name, mode: fs.ModeDir | 0o755})
		}
		body, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		return writeEntry(archive, entry{name: name, mode: 0o644, body: body})
	})
	if err != nil {
		return err
	}
	return errors.Join(archive.Close(), file.Close())
}
