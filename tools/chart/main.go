// SPDX-License-Identifier: Apache-2.0

// Command chart packages Helm charts, as "make charts" does. Files that a chart links to are
// in the archive themselves.
//
// Usage:
//
//	go run ./tools/chart -out DIR CHART...
package main

import (
	"flag"
	"fmt"
	"os"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

func main() {
	out := flag.String("out", ".", "folder for the archives")
	flag.Parse()
	if err := pack(*out, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "chart: %v\n", err)
		os.Exit(1)
	}
}

// pack writes an archive of each chart, and prints their paths.
func pack(out string, folders []string) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, folder := range folders {
		chart, err := loader.LoadDir(folder)
		if err != nil {
			return fmt.Errorf("reading %s: %w", folder, err)
		}
		file, err := chartutil.Save(chart, out)
		if err != nil {
			return fmt.Errorf("packaging %s: %w", folder, err)
		}
		fmt.Println(file)
	}
	return nil
}
