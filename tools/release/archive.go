// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// packed is one regular file of an archive.
type packed struct {
	// Name is its path in the archive, Source the file that it was read from.
	Name, Source string
	Executable   bool
	Data         []byte
}

func (f packed) mode() fs.FileMode {
	if f.Executable {
		return 0o755
	}
	return 0o644
}

// fileTime returns the time of every packed file, so that archives do not depend on when
// they are built.
func fileTime() time.Time {
	return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
}

// tarred packs files into a .tar.gz that contains nothing else: no folders, links, or
// owners and times of this machine.
func tarred(files []packed) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	w := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{
			Typeflag: tar.TypeReg,
			Name:     f.Name,
			Size:     int64(len(f.Data)),
			Mode:     int64(f.mode()),
			ModTime:  fileTime(),
			Format:   tar.FormatUSTAR,
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Name, err)
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Name, err)
		}
	}
	if err := errors.Join(w.Close(), compressed.Close()); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return out.Bytes(), nil
}

// zipped packs files into a .zip in the same way.
func zipped(files []packed) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: fileTime()}
		header.SetMode(f.mode())
		part, err := w.CreateHeader(header)
		if err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Name, err)
		}
		if _, err := part.Write(f.Data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return out.Bytes(), nil
}
