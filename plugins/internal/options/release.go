// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
)

// Release selects the images to install.
type Release struct {
	// Version of the images; empty means the version of this program.
	Version string
	// Registry replaces the default registry.
	Registry string
	// Image replaces the whole image reference.
	Image string
}

// AddFlags adds the flags.
func (r *Release) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&r.Version, "version", "", "version to install; default: the version of this program")
	flags.StringVar(&r.Registry, "image-registry", "", "registry and path of the images")
	flags.StringVar(&r.Image, "image", "", "full image reference, instead of registry and version")
}

// Check validates the flags, and adds a missing "v" to the version.
func (r *Release) Check() error {
	if r.Version != "" {
		if _, err := version.ParseSemantic(r.Version); err != nil {
			return Usage(fmt.Sprintf("wrong value %q for --version", r.Version), "for example --version v0.1.0")
		}
		if !strings.HasPrefix(r.Version, "v") {
			r.Version = "v" + r.Version
		}
	}
	if strings.ContainsAny(r.Registry+r.Image, " \t\n") {
		return Usage("an image reference cannot contain whitespace", "for example --image-registry registry.example.org/ocm")
	}
	return nil
}

// VersionOr returns the version that was asked for, or else own.
func (r *Release) VersionOr(own string) string { return cmp.Or(r.Version, own) }

// Images returns the image references of the hub and the agent. r.Image replaces
// both, because a command installs only one of them.
func (r *Release) Images(own string) (ofHub, ofAgent string) {
	if r.Image != "" {
		return r.Image, r.Image
	}
	images := hub.Images(r.Registry, r.VersionOr(own))
	return images[0], images[1]
}

// Gates is the flag --feature-gates.
type Gates map[string]bool

// AddFlags adds the flag.
func (g *Gates) AddFlags(flags *pflag.FlagSet) {
	flags.Var(g, "feature-gates", "feature gates, for example ManifestWorkReplicaSet=true,ClusterProfile=false")
}

// Set parses Name=bool,...
func (g *Gates) Set(text string) error {
	if *g == nil {
		*g = Gates{}
	}
	for _, part := range strings.Split(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		on, err := strconv.ParseBool(value)
		if !ok || name == "" || err != nil {
			return fmt.Errorf("%q is not Name=true or Name=false", part)
		}
		(*g)[name] = on
	}
	return nil
}

// String returns the gates in the form that Set parses.
func (g *Gates) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(*g)) {
		parts = append(parts, fmt.Sprintf("%s=%t", name, (*g)[name]))
	}
	return strings.Join(parts, ",")
}

// Type returns the type shown in help.
func (g *Gates) Type() string { return "Name=bool,..." }
