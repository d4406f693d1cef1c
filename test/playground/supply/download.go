// SPDX-License-Identifier: Apache-2.0

package supply

import (
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

// Release is where this project publishes the programs of Kubernetes that "make kubernetes"
// builds, one compressed file each.
const Release = "https://github.com/kubectl-ocm/kubectl-ocm/releases/download/kubernetes-" + playground.KubernetesVersion

// unfinished ends the name of a file that is being downloaded.
const unfinished = ".part"

// patience is how long a server may send nothing.
const patience = 30 * time.Second

// checksums has a line for each published program: SHA-256 and size in bytes, both of the
// program itself, and platform/name. Anybody gets the same programs from their Go modules.
//
//go:embed checksums.txt
var checksums string

// pin is what a program has to be.
type pin struct {
	name, sum string
	size      int64
}

// errNotPublished is the error for a platform or a program that is not published.
var errNotPublished = errors.New("it is not published for " + runtime.GOOS + "/" + runtime.GOARCH)

// Download fetches programs of Kubernetes, and keeps none but those whose checksum this source
// pins: it does not matter who serves them.
type Download struct {
	// From is the URL of the folder with the files, as CheckSource accepts it.
	From string
	// Into is the folder that gets the programs. It is made if need be.
	Into string
	// Progress is told, from time to time, how many bytes of how many are there; it may be nil.
	Progress func(done, total int64)

	pins        []pin
	patience    time.Duration
	client      *http.Client
	done, total int64
}

// CheckSource returns an error if programs cannot be fetched from that URL.
func CheckSource(from string) error {
	u, err := url.Parse(from)
	switch {
	case err != nil:
		return err
	case (u.Scheme != "https" && u.Scheme != "http") || u.Host == "":
		return fmt.Errorf("%q is no URL that begins with https:// or http://", from)
	}
	return nil
}

// Fetch puts the named programs into the folder, unless they are there. What it fetched stays
// when a later one fails. It fails for a program, or a machine, for which nothing is published.
func (d Download) Fetch(ctx context.Context, programs ...string) error {
	if d.pins == nil {
		d.pins = pinned(checksums, runtime.GOOS+"-"+runtime.GOARCH)
	}
	d.patience = cmp.Or(d.patience, patience)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	d.client = &http.Client{Transport: transport}
	var left []pin
	for _, name := range programs {
		p, err := d.pinOf(name)
		if err != nil {
			return err
		}
		if !p.isAt(filepath.Join(d.Into, name)) {
			left = append(left, p)
			d.total += p.size
		}
	}
	if err := os.MkdirAll(d.Into, 0o755); err != nil {
		return err
	}
	if err := d.clear(); err != nil {
		return err
	}
	for _, p := range left {
		if err := d.fetch(ctx, p); err != nil {
			return fmt.Errorf("downloading %s: %w", p.name, err)
		}
	}
	return nil
}

// clear removes what downloads left that were killed: nobody has written it for longer than a
// server may send nothing.
func (d Download) clear() error {
	parts, err := filepath.Glob(filepath.Join(d.Into, "*"+unfinished))
	if err != nil {
		return err
	}
	for _, part := range parts {
		if info, err := os.Stat(part); err == nil && time.Since(info.ModTime()) > 2*patience {
			if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// pinned returns the lines of a platform. The file is part of this source and has been tested.
func pinned(text, platform string) []pin {
	var out []pin
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		size, err := strconv.ParseInt(fields[1], 10, 64)
		if name, ok := strings.CutPrefix(fields[2], platform+"/"); ok && err == nil {
			out = append(out, pin{name: name, sum: fields[0], size: size})
		}
	}
	return out
}

func (d Download) pinOf(name string) (pin, error) {
	for _, p := range d.pins {
		if p.name == name {
			return p, nil
		}
	}
	return pin{}, fmt.Errorf("downloading %s: %w", name, errNotPublished)
}

// isAt reports whether the file is the program.
func (p pin) isAt(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return false
	}
	return hex.EncodeToString(sum.Sum(nil)) == p.sum
}

// fetch downloads one program beside its place, and moves it there once it is known to be right.
func (d *Download) fetch(ctx context.Context, p pin) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(d.patience, func() { cancel(fmt.Errorf("nothing arrived for %s", d.patience)) })
	defer stalled.Stop()
	from := fmt.Sprintf("%s/%s-%s-%s.gz", strings.TrimSuffix(d.From, "/"), p.name, runtime.GOOS, runtime.GOARCH)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}
	answer, err := d.client.Do(request)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", from, answer.Status)
	}
	unpacked, err := gzip.NewReader(answer.Body)
	if err != nil {
		return fmt.Errorf("%s is no compressed file: %w", from, err)
	}
	beside, err := os.CreateTemp(d.Into, p.name+".*"+unfinished)
	if err != nil {
		return err
	}
	defer os.Remove(beside.Name())
	err = d.copy(beside, unpacked, p, stalled)
	if err = errors.Join(err, beside.Close()); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	if err := os.Chmod(beside.Name(), 0o755); err != nil {
		return err
	}
	return os.Rename(beside.Name(), filepath.Join(d.Into, p.name))
}

// copy writes the program and returns an error if it is not the right one. It reads no more than
// that one has.
func (d *Download) copy(to io.Writer, from io.Reader, p pin, stalled *time.Timer) error {
	sum := sha256.New()
	count := writerFunc(func(b []byte) (int, error) {
		stalled.Reset(d.patience)
		if d.done += int64(len(b)); d.Progress != nil {
			d.Progress(d.done, d.total)
		}
		return len(b), nil
	})
	n, err := io.Copy(io.MultiWriter(to, sum, count), io.LimitReader(from, p.size+1))
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); n != p.size || got != p.sum {
		return fmt.Errorf("what %s sends is not the program that this release names: nothing of it was kept", d.From)
	}
	return nil
}

// writerFunc sees what is written.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
