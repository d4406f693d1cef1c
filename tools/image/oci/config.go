// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// DefaultRepository is where the project's images are published.
const DefaultRepository = "ghcr.io/kubectl-ocm"

// user is the user and group that every image runs as. It is numeric because a pod with
// runAsNonRoot rejects a name, which it cannot check.
const user = "65532:65532"

var (
	nameFormat     = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)
	tagFormat      = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	platformFormat = regexp.MustCompile(`^linux/[a-z0-9]+$`)
)

// DefaultPlatforms returns the published platforms.
func DefaultPlatforms() []string { return []string{"linux/amd64", "linux/arm64"} }

// Config configures how images are built; the zero value of no field but Dir is valid.
type Config struct {
	// Repository is the part of an image's name before its last slash.
	Repository string
	// Version is the tag, and the version stamped into the programs. It is never
	// "latest", whose pull policy makes the kubelet ask a registry for an image that was
	// loaded by hand.
	Version string
	// Out is the folder of the archives; it is created if it does not exist.
	Out string
	// Platforms are the platforms of every image, in the order of its index.
	Platforms []string
	// Dir is the folder that go build runs in; "" is the current folder.
	Dir string
}

// Image is one image to build.
type Image struct {
	// Name is the last part of the image's name, the name of the program in it and the
	// name of the archive file.
	Name string
	// Package is the main package, as go build accepts it.
	Package string
}

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.Repository == "" || strings.HasSuffix(c.Repository, "/"):
		return fmt.Errorf("repository %q is empty or ends with a slash", c.Repository)
	case c.Version == "":
		return errors.New("no version given")
	case c.Version == "latest":
		return errors.New("version latest is not allowed: clusters would pull it on every start")
	case !tagFormat.MatchString(c.Version):
		return fmt.Errorf("version %q is not a valid image tag", c.Version)
	case c.Out == "":
		return errors.New("no output folder given")
	}
	for i, platform := range c.Platforms {
		if !platformFormat.MatchString(platform) {
			return fmt.Errorf("platform %q is not of the form linux/ARCHITECTURE", platform)
		}
		if slices.Contains(c.Platforms[:i], platform) {
			return fmt.Errorf("platform %q is given twice", platform)
		}
	}
	return nil
}

// Validate returns an error that names the first invalid field.
func (i Image) Validate() error {
	if !nameFormat.MatchString(i.Name) {
		return fmt.Errorf("image name %q is not lower-case letters, digits and separators", i.Name)
	}
	if i.Package == "" || strings.HasPrefix(i.Package, "-") {
		return fmt.Errorf("image %s: package %q is not a Go package", i.Name, i.Package)
	}
	return nil
}

// reference returns the full name under which an image is imported.
func (c Config) reference(name string) string {
	return c.Repository + "/" + name + ":" + c.Version
}

// platformOf parses a platform that Validate accepted.
func platformOf(platform string) v1.Platform {
	os, arch, _ := strings.Cut(platform, "/")
	return v1.Platform{OS: os, Architecture: arch}
}
