// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

const (
	// maxKustomizedFile bounds one file that a kustomization reads, in bytes, and
	// maxKustomized all of them.
	maxKustomizedFile = 8 << 20
	maxKustomized     = 64 << 20
)

// Kustomize builds the kustomization in a folder, as kubectl does: what it names must be below
// the folder of its own kustomization, and nothing is run. Unlike in kubectl, nothing is
// fetched: a remote address is refused before any request. Errors call the folder named.
func Kustomize(folder, named string) (Source, error) {
	if isAddress(folder) {
		return Source{}, addressError(named, folder)
	}
	files := &localFiles{FileSystem: filesys.MakeFsOnDisk()}
	if !files.IsDir(folder) {
		return Source{}, fleet.Misuse(named+" is not a folder", "", fleet.Advice("name a folder with a kustomization.yaml"))
	}
	data, err := buildKustomization(files, folder)
	if files.refusal != nil {
		return Source{}, files.refusal
	}
	if err != nil {
		return Source{}, fleet.Misuse("kustomization "+folder+" cannot be built", fleet.OneLine(err.Error()), BuildKustomization.With("folder", folder))
	}
	return Source{Name: "kustomization " + folder, Data: data}, nil
}

// buildKustomization runs the library and turns a panic into an error.
func buildKustomization(files filesys.FileSystem, folder string) (data []byte, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("it made the builder fail: %v", fault)
		}
	}()
	o := krusty.MakeDefaultOptions()
	o.Reorder = krusty.ReorderOptionLegacy
	objects, err := krusty.MakeKustomizer(o).Run(files, folder)
	if err != nil {
		return nil, err
	}
	return objects.AsYaml()
}

// localFiles is read-only access to the files of this machine. Each file is checked before it
// is used.
type localFiles struct {
	filesys.FileSystem
	read int
	// refusal is why a file was refused.
	refusal error
}

var errReadOnly = errors.New("a kustomization writes no files")

// Create is refused.
func (l *localFiles) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir is refused.
func (l *localFiles) Mkdir(string) error { return errReadOnly }

// MkdirAll is refused.
func (l *localFiles) MkdirAll(string) error { return errReadOnly }

// RemoveAll is refused.
func (l *localFiles) RemoveAll(string) error { return errReadOnly }

// WriteFile is refused.
func (l *localFiles) WriteFile(string, []byte) error { return errReadOnly }

// ReadFile reads a file unless it is too large or has refused content.
func (l *localFiles) ReadFile(path string) ([]byte, error) {
	file, err := l.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, maxKustomizedFile+1))
	if err != nil {
		return nil, err
	}
	l.read += len(data)
	switch {
	case len(data) > maxKustomizedFile:
		err = fleet.Misuse(fmt.Sprintf("%s is larger than %d bytes", path, maxKustomizedFile), "", fleet.Advice("a work holds far less"))
	case l.read > maxKustomized:
		err = fleet.Misuse(fmt.Sprintf("the kustomization reads more than %d bytes", maxKustomized), "the last file was "+path,
			fleet.Advice("a work holds far less"))
	default:
		err = l.checkContent(path, data)
	}
	if err != nil {
		l.refusal = err
		return nil, err
	}
	return data, nil
}

// checkContent refuses content that would expand without bounds, or that names a remote address.
func (l *localFiles) checkContent(path string, data []byte) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if err != nil {
			break // its end, or no YAML: that is said by whom it is meant for
		}
		if errors.Is(checkYAML(document), errExpands) {
			return fleet.Misuse(path+" cannot be read", errExpands.Error(), fleet.Advice("correct the file"))
		}
		if found := addressIn(document); found != "" {
			return addressError(path, found)
		}
	}
	if slices.Contains(konfig.RecognizedKustomizationFileNames(), filepath.Base(path)) {
		return l.checkKustomization(path, data)
	}
	return nil
}
