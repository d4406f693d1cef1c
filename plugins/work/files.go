// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// maxFile bounds one file, in bytes: more than a work can hold in any form.
const maxFile = 8 << 20

// sources reads the files, in the order given; those of a folder by name.
func (o *ApplyOptions) sources() ([]fleet.Source, error) {
	var out []fleet.Source
	stdin := false
	for _, name := range o.Files {
		switch {
		case name == "-" && stdin:
			return nil, options.Usage("-f - is given twice", "standard input can be read once")
		case name == "-":
			stdin = true
			data, err := bounded(o.f.UI.Streams.In, "standard input")
			if err != nil {
				return nil, err
			}
			out = append(out, fleet.Source{Name: "standard input", Data: data})
		case strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://"):
			return nil, options.Usage("-f "+name+": addresses are not read", "fetch it yourself and give it by -f -")
		default:
			found, err := o.walk(name)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

func (o *ApplyOptions) walk(name string) ([]fleet.Source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, &fleet.Error{Kind: fleet.Usage, Message: "-f " + name + " cannot be read", Cause: err.Error(), Fix: "name a file or folder that exists"}
	}
	if !info.IsDir() {
		return read(name)
	}
	var out []fleet.Source
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != name && !o.Recursive {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return nil
		}
		found, err := read(path)
		out = append(out, found...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(out) == 0 {
		return nil, options.Usage("folder "+name+" holds no manifests", "put files that end in .yaml, .yml or .json there")
	}
	return out, nil
}

func read(path string) ([]fleet.Source, error) {
	file, err := os.Open(path) //nolint:gosec // the person named it
	if err != nil {
		return nil, &fleet.Error{Kind: fleet.Usage, Message: "-f " + path + " cannot be read", Cause: err.Error()}
	}
	defer func() { _ = file.Close() }()
	data, err := bounded(file, path)
	if err != nil {
		return nil, err
	}
	return []fleet.Source{{Name: path, Data: data}}, nil
}

func bounded(in io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, &fleet.Error{Message: "reading " + name, Cause: err.Error()}
	}
	if len(data) > maxFile {
		return nil, options.Usage(fmt.Sprintf("%s is larger than %d bytes", name, maxFile), "a work holds 500 KiB of manifests")
	}
	return data, nil
}
