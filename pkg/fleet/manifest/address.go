// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// What is fetched when given as a file, and when given as a folder: there git's ways to name a
// repository count too.
var (
	fileAddress   = regexp.MustCompile(`(?i)://|^https?:`)
	folderAddress = regexp.MustCompile(`(?i)://|^https?:|^(git::)?(github\.com[/:]|[a-z][a-z0-9-]*@)`)
)

func isAddress(folder string) bool { return folderAddress.MatchString(folder) }

// addressError is the error for a place that names a remote address.
func addressError(place, address string) error {
	return fleet.Misuse(place+": "+address+" is a remote address", "manifests are never fetched", fleet.Advice("download it, and give the copy"))
}

// checkKustomization refuses a kustomization that names a remote address anywhere. It is read
// with the library's own reader, so that both read the same.
func (l *localFiles) checkKustomization(path string, data []byte) error {
	var k types.Kustomization
	if k.Unmarshal(data) != nil {
		return nil //nolint:nilerr // the library says what is wrong
	}
	for _, name := range slices.Concat(k.Resources, k.Bases, k.Components) { //nolint:staticcheck // the old field is read as well
		if isAddress(name) {
			return addressError(path, name)
		}
	}
	for _, name := range kustomizedFiles(&k) {
		if _, after, ok := strings.Cut(name, "="); ok && !fileAddress.MatchString(name[:len(name)-len(after)]) {
			name = after // KEY=FILE
		}
		if !isInline(name) && fileAddress.MatchString(name) {
			return addressError(path, name)
		}
	}
	for _, entry := range slices.Concat(k.Generators, k.Transformers, k.Validators) {
		switch {
		case isInline(entry):
			if found := addressIn([]byte(entry)); found != "" {
				return addressError(path, found)
			}
		case isAddress(entry):
			return addressError(path, entry)
		case l.IsDir(filepath.Join(filepath.Dir(path), entry)):
			return fleet.Misuse(path+": "+entry+" is a folder", "generators, transformers and validators of a folder are not built",
				fleet.Advice("name their files one by one"))
		}
	}
	return nil
}

// kustomizedFiles returns what a kustomization names as files, as FILE or KEY=FILE.
func kustomizedFiles(k *types.Kustomization) []string {
	out := slices.Concat(k.Crds, k.Configurations, []string{k.OpenAPI["path"]})
	for _, p := range k.PatchesStrategicMerge { //nolint:staticcheck // the old field is read as well
		out = append(out, string(p))
	}
	for _, p := range slices.Concat(k.Patches, k.PatchesJson6902) { //nolint:staticcheck // the old field is read as well
		out = append(out, p.Path)
	}
	for _, r := range k.Replacements {
		out = append(out, r.Path)
	}
	pairs := func(s types.KvPairSources) {
		out = slices.Concat(out, s.FileSources, s.EnvSources, []string{s.EnvSource})
	}
	for _, g := range k.ConfigMapGenerator {
		pairs(g.KvPairSources)
	}
	for _, g := range k.SecretGenerator {
		pairs(g.KvPairSources)
	}
	return out
}

// isInline reports whether text is a manifest instead of a file name.
func isInline(text string) bool { return strings.ContainsAny(text, "\n{") }

// addressIn returns a remote address among the files that a built-in generator or transformer
// is told to read; empty for every other document.
func addressIn(document []byte) string {
	if !strings.Contains(string(document), "builtin") {
		return ""
	}
	var content map[string]any
	if yaml.Unmarshal(document, &content) != nil || content["apiVersion"] != "builtin" {
		return ""
	}
	return addressAmong(content, false)
}

// addressAmong looks for a remote address below the fields that name files.
func addressAmong(value any, named bool) string {
	switch v := value.(type) {
	case string:
		if _, after, ok := strings.Cut(v, "="); ok && fileAddress.MatchString(after) {
			v = after
		}
		if named && !isInline(v) && fileAddress.MatchString(v) {
			return v
		}
	case []any:
		for _, item := range v {
			if found := addressAmong(item, named); found != "" {
				return found
			}
		}
	case map[string]any:
		for key, item := range v {
			below := named || slices.Contains([]string{"files", "file", "envs", "env", "path", "paths", "schemapath"}, strings.ToLower(key))
			if found := addressAmong(item, below); found != "" {
				return found
			}
		}
	}
	return ""
}
