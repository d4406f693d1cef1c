// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
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
	stdin := false
	for _, name := range f.Files {
		switch {
		case name == "-" && stdin:
			return nil, Usage("-f - is given twice", "standard input can be read only once")
		case name == "-" || strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://"):
			stdin = stdin || name == "-"
			source, err := Text(u, "-f", name)
			if err != nil {
				return nil, err
			}
			out = append(out, source)
		default:
			found, err := f.walk(u, name)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

func (f *Files) walk(u *ui.UI, name string) ([]manifest.Source, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, &fleet.Error{Kind: fleet.Usage, Message: "-f " + name + " cannot be read", Cause: err.Error(),
			Fix: fleet.Advice("name a file or folder that exists")}
	}
	if !info.IsDir() {
		source, err := Text(u, "-f", name)
		return []manifest.Source{source}, err
	}
	var out []manifest.Source
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != name && !f.Recursive {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
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
