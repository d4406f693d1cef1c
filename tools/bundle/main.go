// SPDX-License-Identifier: Apache-2.0

// Command bundle writes the bundles of the Operator Lifecycle Manager, from the objects that
// the plugin installs. "make generate" keeps those in config/olm, and "make bundles" writes
// them to dist/, each a folder from which any builder makes the image of the bundle.
//
// Usage:
//
//	go run ./tools/bundle -version VERSION -out DIR
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	version := flag.String("version", "", "version of the bundles, for example v0.1.0")
	out := flag.String("out", "config/olm", "folder for the bundles")
	flag.Parse()
	if err := run(*version, *out); err != nil {
		fmt.Fprintf(os.Stderr, "bundle: %v\n", err)
		os.Exit(1)
	}
}

// run writes every bundle, and removes files of earlier ones.
func run(version, out string) error {
	products, err := products(version)
	if err != nil {
		return err
	}
	for _, p := range products {
		folder := filepath.Join(out, p.name)
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
		files, err := p.files()
		if err != nil {
			return fmt.Errorf("making the bundle %s: %w", p.name, err)
		}
		for name, text := range files {
			path := filepath.Join(folder, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // not secret
				return err
			}
		}
		fmt.Println(folder)
	}
	return nil
}
