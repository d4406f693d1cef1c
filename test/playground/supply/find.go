// SPDX-License-Identifier: Apache-2.0

package supply

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

// Sources are where the programs of Kubernetes may be.
type Sources struct {
	// Given is a folder that the user named; if it is set, no other is looked at.
	Given string
	// Assets is the folder in KUBEBUILDER_ASSETS, Path are those of PATH.
	Assets string
	Path   []string
	// Cache is the folder with what was built before.
	Cache string
}

// Kubernetes returns the programs of the first source that has all of them, in the order of
// the fields. The error is playground.ErrNoBinaries if none has.
func Kubernetes(ctx context.Context, s Sources) (playground.Binaries, error) {
	folders := append(append([]string{s.Assets}, s.Path...), s.Cache)
	if s.Given != "" {
		folders = []string{s.Given}
	}
	for i, folder := range folders {
		if folder == "" {
			continue
		}
		full, err := filepath.Abs(folder)
		if err != nil {
			return playground.Binaries{}, err
		}
		folders[i] = full
	}
	return playground.FindBinaries(ctx, folders...)
}

// needed are the programs of this project without which there is no fleet; optional are those
// of its examples.
var (
	needed   = []string{"ocm-hub", "ocm-agent"}
	optional = []string{"webdemo", "helloworld-addon"}
)

// Absent is the error for a program of this project that none of the folders has.
type Absent struct {
	// Program is its name.
	Program string
	// Folders are where it was looked for.
	Folders []string
}

// Error names program and folders.
func (e *Absent) Error() string {
	return fmt.Sprintf("there is no %s in any of %q", e.Program, e.Folders)
}

// Programs returns this project's programs, each from the first folder that has it: those of
// hub and agent, and what there is of the examples. Empty names of folders are left out.
func Programs(folders ...string) (map[string]string, error) {
	found := map[string]string{}
	for i, name := range append(needed, optional...) {
		for _, folder := range folders {
			path, err := filepath.Abs(filepath.Join(folder, name))
			if err != nil {
				return nil, err
			}
			if info, err := os.Stat(path); folder != "" && found[name] == "" && err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o100 != 0 {
				found[name] = path
			}
		}
		if i < len(needed) && found[name] == "" {
			return nil, &Absent{Program: name, Folders: folders}
		}
	}
	return found, nil
}
