// SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// checksumsFile names the programs that playgrounds may download.
const checksumsFile = "../playground/supply/checksums.txt"

// publish writes the programs of a control plane into a folder, compressed, under the names under
// which playgrounds download them. It fails, and says which line is missing, if one is not what the
// checksums name.
func publish(out io.Writer, folder string) error {
	wanted, versions, err := plan(true)
	if err != nil {
		return err
	}
	dir, err := cacheDir(versions[kubernetesModule])
	if err != nil {
		return err
	}
	known, err := os.ReadFile(checksumsFile)
	if err != nil {
		return fmt.Errorf("reading the checksums: %w", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	platform := runtime.GOOS + "-" + runtime.GOARCH
	var unknown []string
	for _, p := range wanted {
		data, err := os.ReadFile(filepath.Join(dir, p.name))
		if err != nil {
			return fmt.Errorf("publishing %s: %w", p.name, err)
		}
		line := lineOf(data, platform+"/"+p.name)
		if !strings.Contains(string(known), line) {
			unknown = append(unknown, line)
			continue
		}
		file := filepath.Join(folder, p.name+"-"+platform+".gz")
		if err := compress(file, data); err != nil {
			return fmt.Errorf("publishing %s: %w", p.name, err)
		}
		fmt.Fprintln(out, "published", file)
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%s does not name what was built for %s:\n%s", checksumsFile, platform, strings.Join(unknown, ""))
	}
	return nil
}

// lineOf returns the line of the checksums for a program.
func lineOf(data []byte, name string) string {
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%s %d %s\n", hex.EncodeToString(sum[:]), len(data), name)
}

func compress(path string, data []byte) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	packed := gzip.NewWriter(file)
	if _, err := packed.Write(data); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return file.Close()
}
