// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// ReadFile reads a kubeconfig that a pod has as a file, such as that of a mounted secret. Its
// references may name files in the same directory and no others.
func ReadFile(path string) (*Config, error) {
	raw, err := readBounded(path)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	return parse(raw, references{dir: filepath.Dir(path)})
}

// ReadMounted returns the data of a mounted secret: the kubeconfig at path and, of the keys,
// those that exist beside it.
func ReadMounted(path string, keys ...string) (map[string][]byte, error) {
	raw, err := readBounded(path)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	data := map[string][]byte{clusterv1.SecretKeyKubeconfig: raw}
	for _, key := range keys {
		switch raw, err = readBounded(filepath.Join(filepath.Dir(path), key)); {
		case err == nil:
			data[key] = raw
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("reading what belongs to the kubeconfig: %w", err)
		}
	}
	return data, nil
}

// readBounded reads a file of at most maxSize bytes.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(raw) > maxSize {
		err = fmt.Errorf("%s has more than %d bytes", path, maxSize)
	}
	return raw, err
}

// references are what a kubeconfig may refer to: keys of its secret, or files in its directory;
// nothing if both are empty.
type references struct {
	secret map[string][]byte
	dir    string
}

// content resolves a value that is given as data or as a reference, which in a secret means the
// key; path is the file that it was read from.
func (r references) content(data []byte, reference, key string) (value []byte, path string, err error) {
	switch {
	case len(data) > 0 || reference == "":
		return data, "", nil
	case r.dir != "":
		return r.read(reference)
	case r.secret == nil || reference != key:
		return nil, "", errors.New("it names a file, which a secret cannot hold: give the content itself")
	case len(r.secret[key]) == 0:
		return nil, "", fmt.Errorf("key %s is missing or empty in the secret", key)
	}
	return r.secret[key], "", nil
}

func (r references) read(reference string) (value []byte, path string, err error) {
	path = filepath.Join(r.dir, filepath.Base(reference))
	if filepath.Clean(reference) != filepath.Base(reference) && filepath.Clean(reference) != path {
		return nil, "", errors.New("it names a file elsewhere: only files beside the kubeconfig are read")
	}
	value, err = readBounded(path)
	if err == nil && len(value) == 0 {
		err = fmt.Errorf("%s is empty", path)
	}
	return value, path, err
}
