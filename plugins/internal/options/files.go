// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Files are the flags of a command that reads manifests.
type Files struct {
	// Files are files, folders, or "-" for standard input. Kustomize is a folder with
	// a kustomization to build instead.
	Files     []string
	Kustomize string
	// Recursive also reads subfolders.
	Recursive bool
}

// AddFlags adds the flags.
func (f *Files) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&f.Files, "filename", "f", nil, "files or folders with YAML or JSON manifests, - for standard input")
	flags.StringVarP(&f.Kustomize, "kustomize", "k", "", "folder with a kustomization, instead of -f")
	flags.BoolVarP(&f.Recursive, "recursive", "R", true, "also read subfolders")
}

// Given reports whether there is anything to read. It is an error to give both -f and -k.
func (f *Files) Given() (bool, error) {
	if len(f.Files) > 0 && f.Kustomize != "" {
		return true, Usage("-f and -k are both given", "leave one of them out; a kustomization may name files")
	}
	return len(f.Files) > 0 || f.Kustomize != "", nil
}

// Sources reads the files in the given order; those in a folder are ordered by name.
func (f *Files) Sources(u *ui.UI) ([]manifest.Source, error) {
	if f.Kustomize != "" {
		source, err := manifest.Kustomize(f.Kustomize, "-k "+f.Kustomize)
		return []manifest.Source{source}, err
	}
	var out []manifest.Source
	for i, name := range f.Files {
		if name == "-" && slices.Index(f.Files, name) < i {
			return nil, Usage("-f - is given twice", "standard input can be read only once")
		}
		found, err := f.read(u, name)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// read reads one value of -f.
func (f *Files) read(u *ui.UI, name string) ([]manifest.Source, error) {
	info, err := os.Stat(name)
	switch {
	case name == "-", isURL(name), err == nil && !info.IsDir():
		source, err := Text(u, "-f", name)
		return []manifest.Source{source}, err
	case err != nil:
		return nil, &fleet.Error{Kind: fleet.Usage, Message: "-f " + name + " cannot be read", Cause: err.Error(),
			Fix: fleet.Advice("name a file or folder that exists")}
	}
	var out []manifest.Source
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && path != name && !f.Recursive:
			return filepath.SkipDir
		case entry.IsDir(), !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			return nil
		}
		source, err := Text(u, "-f", path)
		out = append(out, source)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(out) == 0 {
		return nil, Usage("folder "+name+" holds no manifests", "put files that end in .yaml, .yml or .json there")
	}
	return out, nil
}

// maxFile is the maximum size of a file in bytes, larger than any work can be.
const maxFile = 8 << 20

// Text reads the file that a flag names; "-" is standard input. URLs are refused.
func Text(u *ui.UI, flag, name string) (manifest.Source, error) {
	switch {
	case name == "-":
		return readBounded(u.Streams.In, "standard input")
	case isURL(name):
		return manifest.Source{}, Usage(flag+" "+name+": URLs are not read", "fetch it yourself and pipe it to "+flag+" -")
	}
	file, err := os.Open(name) //nolint:gosec // the user named it
	if err != nil {
		return manifest.Source{}, &fleet.Error{Kind: fleet.Usage, Message: flag + " " + name + " cannot be read", Cause: err.Error(),
			Fix: fleet.Advice("name a file that exists")}
	}
	defer func() { _ = file.Close() }()
	return readBounded(file, name)
}

func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

func readBounded(in io.Reader, name string) (manifest.Source, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return manifest.Source{}, &fleet.Error{Kind: fleet.Usage, Message: name + " cannot be read", Cause: err.Error(),
			Fix: fleet.Advice("name a file that can be read")}
	}
	if len(data) > maxFile {
		return manifest.Source{}, Usage(fmt.Sprintf("%s is larger than %d bytes", name, maxFile), "give manifests")
	}
	return manifest.Source{Name: name, Data: data}, nil
}
