// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// sources reads the files, in the order given; those of a folder by name.
func (o *ApplyOptions) sources() ([]fleet.Source, error) {
	if o.Kustomize != "" {
		source, err := fleet.Kustomize(o.Kustomize)
		return []fleet.Source{source}, err
	}
	var out []fleet.Source
	stdin := false
	for _, name := range o.Files {
		switch {
		case name == "-" && stdin:
			return nil, options.Usage("-f - is given twice", "standard input can be read once")
		case name == "-" || strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://"):
			stdin = stdin || name == "-"
			source, err := options.Text(o.f.UI, "-f", name)
			if err != nil {
				return nil, err
			}
			out = append(out, source)
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
		source, err := options.Text(o.f.UI, "-f", name)
		return []fleet.Source{source}, err
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
		source, err := options.Text(o.f.UI, "-f", path)
		out = append(out, source)
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
