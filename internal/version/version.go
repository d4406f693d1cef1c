// SPDX-License-Identifier: Apache-2.0

// Package version returns the version of the running binary. Release builds stamp it from
// the VERSION file; "go install" builds take it from the build information that Go
// records; everything else is "v0.0.0-dev".
package version

import (
	"runtime/debug"
	"strings"
)

// dev is the version of a build that is neither stamped nor installed from a
// released module. Operators treat it as 0.0.0 when they compare versions.
const dev = "v0.0.0-dev"

// stamped is set at link time:
// -ldflags "-X github.com/kubectl-ocm/kubectl-ocm/internal/version.stamped=v1.2.3".
var stamped string

// Get returns the semantic version of this binary with a leading "v".
func Get() string {
	if stamped != "" {
		return stamped
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return dev
	}
	return fromModule(info.Main.Version)
}

// fromModule maps the main module's version in the build information to our version:
// development builds have none, "(devel)" or a version that Go derived from a dirty
// checkout.
func fromModule(v string) string {
	if !strings.HasPrefix(v, "v") || strings.Contains(v, "+dirty") || strings.HasPrefix(v, "v0.0.0-") {
		return dev
	}
	return v
}
