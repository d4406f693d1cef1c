// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

const (
	apiVersion = "backup.ocm/v1"
	headerKind = "HubBackup"
	footerKind = "HubBackupEnd"
	// maxLine is the size of the largest object: etcd takes 1.5 MiB, and JSON may be longer.
	maxLine = 8 << 20
)

// footerStart begins the last line.
var footerStart = []byte(`{"apiVersion":"` + apiVersion + `","kind":"` + footerKind + `"`)

// Header is the first line of a backup.
type Header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Program is the version of the program that wrote it, Hub that of the hub's process; empty
	// when another distribution runs the hub.
	Program string `json:"programVersion"`
	Hub     string `json:"hubVersion,omitempty"`
	// Server and CAHash are how agents reach the hub. Without a hash, a public CA issued its
	// certificate.
	Server string `json:"server"`
	CAHash string `json:"caHash,omitempty"`
	// Created is when the backup began.
	Created time.Time `json:"created"`
}

// Footer is the last line of a backup.
type Footer struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Counts are the numbers of objects by kind.
	Counts map[string]int `json:"counts"`
	// SHA256 is the checksum of all lines before this one.
	SHA256 string `json:"sha256"`
}

// writer writes a backup.
type writer struct {
	out    *bufio.Writer
	sum    hash.Hash
	counts map[string]int
	bytes  int64
}

func newWriter(out io.Writer) *writer {
	return &writer{out: bufio.NewWriter(out), sum: sha256.New(), counts: map[string]int{}}
}

func (w *writer) line(value any) error {
	var text bytes.Buffer
	lines := json.NewEncoder(&text)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(value); err != nil {
		return fmt.Errorf("encoding the backup: %w", err)
	}
	w.sum.Write(text.Bytes())
	w.bytes += int64(text.Len())
	if _, err := w.out.Write(text.Bytes()); err != nil {
		return fleet.Fail("writing the backup", err, nil)
	}
	return nil
}

func (w *writer) object(u *unstructured.Unstructured) error {
	w.counts[u.GetKind()]++
	return w.line(u.Object)
}

// end writes the footer.
func (w *writer) end() (Footer, error) {
	f := Footer{APIVersion: apiVersion, Kind: footerKind, Counts: w.counts, SHA256: hex.EncodeToString(w.sum.Sum(nil))}
	if err := w.line(f); err != nil {
		return f, err
	}
	if err := w.out.Flush(); err != nil {
		return f, fleet.Fail("writing the backup", err, nil)
	}
	return f, nil
}

// reader reads a backup that may be cut, changed or hostile.
type reader struct {
	Header Header
	// Footer is set once next has returned io.EOF.
	Footer Footer

	in     *bufio.Scanner
	sum    hash.Hash
	counts map[string]int
	rank   int
	number int
}

// open reads the header.
func open(in io.Reader) (*reader, error) {
	r := &reader{in: bufio.NewScanner(in), sum: sha256.New(), counts: map[string]int{}}
	r.in.Buffer(make([]byte, 64<<10), maxLine)
	line, err := r.read()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(line, &r.Header); err != nil || r.Header.Kind != headerKind {
		return nil, broken("its first line is no header of a backup")
	}
	if r.Header.APIVersion != apiVersion {
		return nil, fleet.Refuse("the backup has another format", fmt.Sprintf("it is %.40q, and this program reads %q", r.Header.APIVersion, apiVersion),
			fleet.Advice(fmt.Sprintf("use the version of the program that wrote it: %.40q", r.Header.Program)))
	}
	return r, nil
}

// broken returns the error for a file that cannot be restored.
func broken(cause string) error {
	return fleet.Refuse("the backup is broken", cause, fleet.Advice("use another backup; this one was cut or changed"))
}

// read returns the next line, and adds it to the checksum unless it is the footer.
func (r *reader) read() ([]byte, error) {
	if !r.in.Scan() {
		switch err := r.in.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			return nil, broken(fmt.Sprintf("line %d is longer than %d bytes", r.number+1, maxLine))
		case err != nil:
			return nil, fleet.Fail("reading the backup", err, nil)
		}
		return nil, broken(fmt.Sprintf("it ends after %d lines, without its last one", r.number))
	}
	r.number++
	if line := r.in.Bytes(); !bytes.HasPrefix(line, footerStart) {
		r.sum.Write(line)
		r.sum.Write([]byte{'\n'})
	}
	return r.in.Bytes(), nil
}

// next returns the next object, or io.EOF after the last one if the file is whole.
func (r *reader) next() (*unstructured.Unstructured, error) {
	line, err := r.read()
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(line, footerStart) {
		return nil, r.verify(line)
	}
	u, err := manifest.Decode(line)
	if err != nil {
		return nil, broken(fmt.Sprintf("line %d: %s", r.number, fleet.OneLine(err.Error())))
	}
	rank, known := rankOf(u)
	switch {
	case !known:
		return nil, broken(fmt.Sprintf("line %d: no backup has objects of kind %.60q", r.number, u.GetKind()))
	case rank < r.rank:
		return nil, broken(fmt.Sprintf("line %d: a %s comes too late", r.number, u.GetKind()))
	}
	r.rank = rank
	r.counts[u.GetKind()]++
	return u, nil
}

// verify compares what was read with the footer, and returns io.EOF if all is there.
func (r *reader) verify(line []byte) error {
	if err := json.Unmarshal(line, &r.Footer); err != nil {
		return broken("its last line is not as it was written")
	}
	if r.Footer.SHA256 != hex.EncodeToString(r.sum.Sum(nil)) || !maps.Equal(r.Footer.Counts, r.counts) {
		return broken("its content does not have the checksum in its last line")
	}
	if r.in.Scan() {
		return broken("something follows its last line")
	}
	return io.EOF
}
