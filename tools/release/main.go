// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
)

const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// config selects what to build and where to write it.
type config struct {
	// Version is stamped into the binaries and written into the manifest; it
	// is a semantic version with a leading "v".
	Version string
	// Out is the folder of archives and checksums, Manifest the file of the krew
	// manifest.
	Out, Manifest string
	// Commit is the full hash of the commit that the sources are of; empty if they are of
	// none.
	Commit string
	// Key is the file of the SSH key that signs the checksums; without one nothing is signed.
	Key       string
	Platforms []platform
}

// run is the whole program: it prints one line for each file to stdout and returns the
// exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var c config
	flags.StringVar(&c.Version, "version", "", "version of the release, for example v1.2.3")
	flags.StringVar(&c.Out, "out", "dist", "folder that archives and checksums are written to")
	flags.StringVar(&c.Manifest, "manifest", "krew-index/plugins/ocm.yaml", "krew manifest to write")
	flags.StringVar(&c.Commit, "commit", "", "the commit that the sources are of, for the manifest to name")
	flags.StringVar(&c.Key, "key", "", "SSH key that signs the checksums, or its public half if an ssh-agent holds it")
	names := flags.String("platform", strings.Join(allPlatforms, ","), "platforms to build for, separated by commas")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	if err != nil {
		return exitUsage
	}
	if err := checkVersion(c.Version); err != nil {
		fmt.Fprintf(stderr, "release: -version: %v\n", err)
		return exitUsage
	}
	if c.Platforms, err = parsePlatforms(*names); err != nil {
		fmt.Fprintf(stderr, "release: -platform: %v\n", err)
		return exitUsage
	}
	if err := release(ctx, c, stdout); err != nil {
		fmt.Fprintf(stderr, "release: %v\n", err)
		return exitFailed
	}
	if c.Key == "" {
		fmt.Fprintln(stderr, "release: the checksums are unsigned; make release KEY=FILE signs them by an SSH key")
	}
	return exitDone
}
