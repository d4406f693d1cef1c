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

	"github.com/kubectl-ocm/kubectl-ocm/tools/image/oci"
)

// Exit codes: 1 means that a build failed, 2 that the command line is invalid.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

const usage = `Builds OCI image archives without a container engine.

usage: go run ./tools/image -version VERSION [-out FOLDER] [-platform LIST] NAME=PACKAGE...
       go run ./tools/image -version VERSION -rootfs FOLDER -platform PLATFORM NAME=PACKAGE

NAME=PACKAGE is an image and the main package of its program, for example
ocm-hub=./controllers/ocm-hub.

`

// errUsage marks errors of the command line.
var errUsage = errors.New("run with -h for help")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program: it prints one line for each archive to stdout and returns the
// exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	config, images, rootfs, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err == nil {
		err = build(ctx, config, images, rootfs, stdout)
	}
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "image: %v\n", err)
	if errors.Is(err, errUsage) {
		return exitUsage
	}
	return exitFailed
}

// parse parses the command line. Every error except flag.ErrHelp is an errUsage.
func parse(args []string, stderr io.Writer) (oci.Config, []oci.Image, string, error) {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	var config oci.Config
	flags.StringVar(&config.Version, "version", "", "tag of the images and version stamped into the programs, for example v0.1.0")
	flags.StringVar(&config.Repository, "repository", oci.DefaultRepository, "registry and organisation that the images are named after")
	flags.StringVar(&config.Out, "out", "dist/images", "folder that the archives are written to")
	platforms := flags.String("platform", strings.Join(oci.DefaultPlatforms(), ","), "platforms of each image, separated by commas")
	rootfs := flags.String("rootfs", "", "write the files of one image for one platform to this folder instead of an archive")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return config, nil, "", err
		}
		return config, nil, "", errors.Join(err, errUsage)
	}
	config.Platforms = strings.Split(*platforms, ",")
	images := make([]oci.Image, 0, flags.NArg())
	for _, arg := range flags.Args() {
		name, pkg, found := strings.Cut(arg, "=")
		if !found {
			return config, nil, "", fmt.Errorf("image %q is not of the form NAME=PACKAGE: %w", arg, errUsage)
		}
		images = append(images, oci.Image{Name: name, Package: pkg})
	}
	if err := check(config, images, *rootfs); err != nil {
		return config, nil, "", fmt.Errorf("%w: %w", err, errUsage)
	}
	return config, images, *rootfs, nil
}

// check rejects what cannot be built before anything is compiled.
func check(config oci.Config, images []oci.Image, rootfs string) error {
	if len(images) == 0 {
		return errors.New("no image given")
	}
	if err := config.Validate(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, image := range images {
		if err := image.Validate(); err != nil {
			return err
		}
		if seen[image.Name] {
			return fmt.Errorf("image %q is given twice", image.Name)
		}
		seen[image.Name] = true
	}
	if rootfs != "" && (len(images) != 1 || len(config.Platforms) != 1) {
		return errors.New("-rootfs takes one image and one platform")
	}
	return nil
}

// build builds what parse returned.
func build(ctx context.Context, config oci.Config, images []oci.Image, rootfs string, stdout io.Writer) error {
	if rootfs != "" {
		return oci.WriteRootfs(ctx, config, images[0], rootfs)
	}
	for _, image := range images {
		archive, err := oci.Build(ctx, config, image)
		if err != nil {
			return fmt.Errorf("building image %s: %w", image.Name, err)
		}
		fmt.Fprintf(stdout, "%s\t%s\t%s\t%.1f MiB\n", archive.Reference, archive.Path, archive.Digest, float64(archive.Size)/(1<<20))
	}
	return nil
}
