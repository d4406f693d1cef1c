// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

var (
	// safeName is krew's rule for names of plugins.
	safeName = regexp.MustCompile(`^[\w-]+$`)
	// lowerSHA256 is krew's rule for checksums: upper case is refused.
	lowerSHA256 = regexp.MustCompile(`^[a-f0-9]{64}$`)
	// reservedNames cannot be files on Windows.
	reservedNames = []string{
		"CON", "PRN", "AUX", "NUL", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8", "COM9",
		"LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9",
	}
	// krewPlatforms are the platforms that krew's default index knows.
	krewPlatforms = []platform{
		{"windows", "386"}, {"windows", "amd64"}, {"windows", "arm64"},
		{"linux", "386"}, {"linux", "amd64"}, {"linux", "arm"}, {"linux", "arm64"}, {"linux", "ppc64le"},
		{"darwin", "386"}, {"darwin", "amd64"}, {"darwin", "arm64"},
	}
)

// checkVersion requires a semantic version with a leading "v", as krew does.
func checkVersion(v string) error {
	if !strings.HasPrefix(v, "v") {
		return fmt.Errorf("%q is not a version with a leading v, such as v1.2.3", v)
	}
	if _, err := version.ParseSemantic(v); err != nil {
		return fmt.Errorf("%q is not a semantic version: %w", v, err)
	}
	return nil
}

// check returns what krew's validator and the checks of its default index would reject in
// a manifest in a file of the given name.
func (m manifest) check(file string) []error {
	var problems []error
	add := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	name := m.Metadata.Name
	add(m.APIVersion == manifestVersion, "apiVersion %q is not %s", m.APIVersion, manifestVersion)
	add(m.Kind == manifestKind, "kind %q is not %s", m.Kind, manifestKind)
	add(safeName.MatchString(name), "metadata.name %q has characters other than letters, digits, - and _", name)
	add(!slices.Contains(reservedNames, strings.ToUpper(name)), "metadata.name %q is reserved on Windows", name)
	add(filepath.Base(file) == name+".yaml", "metadata.name %q is not the name of the file %s", name, filepath.Base(file))
	if err := checkVersion(m.Spec.Version); err != nil {
		problems = append(problems, fmt.Errorf("spec.version %w", err))
	}
	short := m.Spec.ShortDescription
	add(short != "" && !strings.Contains(short, "\n"), "spec.shortDescription %q is not one line", short)
	add(m.Spec.Description != "", "spec.description is missing")
	add(len(m.Spec.Platforms) > 0, "spec.platforms is empty")
	for i, p := range m.Spec.Platforms {
		for _, err := range p.check() {
			problems = append(problems, fmt.Errorf("spec.platforms[%d].%w", i, err))
		}
	}
	return append(problems, m.checkSelection()...)
}

func (p manifestPlatform) check() []error {
	problems := p.Selector.check()
	add := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	address, err := url.Parse(p.URI)
	add(err == nil && (address.Scheme == "https" || address.Scheme == "http") && address.Host != "", "uri %q is not an HTTP address", p.URI)
	add(strings.HasSuffix(p.URI, ".tar.gz") || strings.HasSuffix(p.URI, ".zip"), "uri %q is neither .tar.gz nor .zip", p.URI)
	add(lowerSHA256.MatchString(p.SHA256), "sha256 %q is not 64 lower-case hexadecimal digits", p.SHA256)
	add(inside(p.Bin), "bin %q is not a path inside the plugin's folder", p.Bin)
	windows := slices.ContainsFunc(krewPlatforms, func(k platform) bool { return k.OS == "windows" && p.Selector.matches(k) })
	add(!windows || strings.HasSuffix(p.Bin, ".exe"), "bin %q has no .exe for Windows", p.Bin)
	add(p.Files == nil || len(p.Files) > 0, "files is empty; leave it out to take everything")
	for i, f := range p.Files {
		add(f.From != "" && f.To != "", "files[%d] needs from and to", i)
	}
	return problems
}

// inside reports whether a path stays below the folder it is relative to.
func inside(name string) bool {
	clean := path.Clean(name)
	return name != "" && clean != "." && !path.IsAbs(name) && clean != ".." && !strings.HasPrefix(clean, "../")
}

func (s *manifestSelector) check() []error {
	if s == nil || len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		return []error{errors.New("selector is empty")}
	}
	var problems []error
	known := func(key string) {
		if key != "os" && key != "arch" {
			problems = append(problems, fmt.Errorf("selector key %q is neither os nor arch", key))
		}
	}
	for key := range s.MatchLabels {
		known(key)
	}
	for _, r := range s.MatchExpressions {
		known(r.Key)
		if !slices.Contains([]string{"In", "NotIn", "Exists", "DoesNotExist"}, r.Operator) {
			problems = append(problems, fmt.Errorf("selector operator %q is not known", r.Operator))
		}
	}
	return problems
}

// matches reports whether krew on a platform would choose the entry.
func (s *manifestSelector) matches(p platform) bool {
	if s == nil {
		return false
	}
	labels := map[string]string{"os": p.OS, "arch": p.Arch}
	for key, value := range s.MatchLabels {
		if labels[key] != value {
			return false
		}
	}
	return !slices.ContainsFunc(s.MatchExpressions, func(r manifestRequirement) bool { return !r.matches(labels) })
}

func (r manifestRequirement) matches(labels map[string]string) bool {
	value, has := labels[r.Key]
	switch r.Operator {
	case "In":
		return has && slices.Contains(r.Values, value)
	case "NotIn":
		return !has || !slices.Contains(r.Values, value)
	case "Exists":
		return has
	case "DoesNotExist":
		return !has
	}
	return false
}

// checkSelection requires every entry to select a platform that krew knows, and no
// platform to be selected twice.
func (m manifest) checkSelection() []error {
	var problems []error
	used := make([]bool, len(m.Spec.Platforms))
	for _, p := range krewPlatforms {
		var by []int
		for i, entry := range m.Spec.Platforms {
			if entry.Selector.matches(p) {
				by, used[i] = append(by, i), true
			}
		}
		if len(by) > 1 {
			problems = append(problems, fmt.Errorf("spec.platforms %v all select %s/%s", by, p.OS, p.Arch))
		}
	}
	for i, u := range used {
		if !u {
			problems = append(problems, fmt.Errorf("spec.platforms[%d] selects no platform that krew knows", i))
		}
	}
	return problems
}
