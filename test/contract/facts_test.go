// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Place is what a fact is about: a version, or * for all of them, and either a path in
// the schema or an @word for the definition itself.
type Place struct{ Version, Path string }

// Fact is what is true of a place: a type, and sorted attributes as key=JSON, separated
// by semicolons.
type Fact struct{ Type, Attributes string }

// Facts maps places of one definition to facts.
type Facts map[Place]Fact

// ReadFacts reads the files name.tsv of a folder. The keys are the full names of
// the definitions.
func ReadFacts(folder string) (map[string]Facts, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.tsv"))
	if err != nil {
		return nil, fmt.Errorf("listing facts: %w", err)
	}
	all := map[string]Facts{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading facts: %w", err)
		}
		facts := Facts{}
		for _, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n")[1:] {
			columns := append(strings.Split(line, "\t"), "", "")
			facts[Place{columns[0], columns[1]}] = Fact{columns[2], columns[3]}
		}
		all[strings.TrimSuffix(filepath.Base(name), ".tsv")] = facts
	}
	return all, nil
}

// FactsOf returns the facts of a definition, in the form of the files. The
// standard fields apiVersion, kind and metadata are left out.
func FactsOf(definition *apiextensionsv1.CustomResourceDefinition) (Facts, error) {
	facts := Facts{}
	names := definition.Spec.Names
	for word, value := range map[string]any{
		"group": definition.Spec.Group, "scope": definition.Spec.Scope, "kind": names.Kind, "listKind": names.ListKind,
		"plural": names.Plural, "singular": names.Singular,
		"shortNames": append([]string{}, names.ShortNames...), "categories": append([]string{}, names.Categories...),
	} {
		facts[Place{"*", "@" + word}] = Fact{Attributes: encode(value)}
	}
	for _, version := range definition.Spec.Versions {
		subresources := []string{}
		if version.Subresources != nil && version.Subresources.Scale != nil {
			subresources = append(subresources, "scale")
		}
		if version.Subresources != nil && version.Subresources.Status != nil {
			subresources = append(subresources, "status")
		}
		facts[Place{version.Name, "@served"}] = Fact{Attributes: encode(version.Served)}
		facts[Place{version.Name, "@storage"}] = Fact{Attributes: encode(version.Storage)}
		facts[Place{version.Name, "@subresources"}] = Fact{Attributes: encode(subresources)}
		for _, column := range version.AdditionalPrinterColumns {
			attributes := map[string]any{"jsonPath": column.JSONPath}
			if column.Priority != 0 {
				attributes["priority"] = column.Priority
			}
			if column.Format != "" {
				attributes["format"] = column.Format
			}
			facts[Place{version.Name, "@column " + column.Name}] = Fact{column.Type, encode(attributes)}
		}
		schema := map[string]any{}
		raw, err := json.Marshal(version.Schema.OpenAPIV3Schema)
		if err != nil {
			return nil, fmt.Errorf("encoding schema of %s: %w", definition.Name, err)
		}
		if err := json.Unmarshal(raw, &schema); err != nil {
			return nil, fmt.Errorf("decoding schema of %s: %w", definition.Name, err)
		}
		facts.walk(version.Name, "", schema, false)
	}
	return facts, nil
}

// compared are the attributes of a schema that facts list.
var compared = []string{
	"enum", "default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength",
	"pattern", "format", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "nullable",
	"x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource",
	"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "oneOf", "anyOf", "allOf", "not",
}

// walk adds the facts of a schema and of everything below it.
func (f Facts) walk(version, path string, schema map[string]any, required bool) {
	if path == ".apiVersion" || path == ".kind" || path == ".metadata" {
		return
	}
	attributes := map[string]any{}
	for _, name := range compared {
		if value, found := schema[name]; found {
			attributes[name] = value
		}
	}
	if required {
		attributes["required"] = true
	}
	if rules := rulesOf(schema); len(rules) > 0 {
		attributes["rules"] = rules
	}
	kind, _ := schema["type"].(string)
	if kind == "" {
		kind = "any"
	}
	place := Place{version, path}
	if path == "" {
		place.Path = "."
	}
	f[place] = Fact{kind, join(attributes)}

	needed, _ := schema["required"].([]any)
	for name, property := range below(schema, "properties") {
		f.walk(version, path+"."+name, property.(map[string]any), slices.Contains(needed, any(name)))
	}
	if items := below(schema, "items"); items != nil {
		f.walk(version, path+"[]", items, false)
	}
	if values := below(schema, "additionalProperties"); values != nil {
		f.walk(version, path+"{}", values, false)
	}
}

// Compare returns one line for every fact that is not true, and the places that no fact
// covers, both sorted.
func Compare(name string, want, got Facts) (differences []string, extra []Place) {
	for place, fact := range want {
		have, found := got[place]
		switch {
		case !found:
			differences = append(differences, fmt.Sprintf("%s %s %s\n  want %s %s\n  but it is missing",
				name, place.Version, place.Path, fact.Type, fact.Attributes))
		case have != fact:
			differences = append(differences, fmt.Sprintf("%s %s %s\n  want %s %s\n  got  %s %s",
				name, place.Version, place.Path, fact.Type, fact.Attributes, have.Type, have.Attributes))
		}
	}
	for place := range got {
		if _, found := want[place]; !found {
			extra = append(extra, place)
		}
	}
	sort.Strings(differences)
	slices.SortFunc(extra, func(a, b Place) int {
		return strings.Compare(a.Version+a.Path, b.Version+b.Path)
	})
	return differences, extra
}

// below returns a field that holds an object, or nil.
func below(schema map[string]any, field string) map[string]any {
	value, _ := schema[field].(map[string]any)
	return value
}

// rulesOf returns the CEL rules of a schema, sorted.
func rulesOf(schema map[string]any) []string {
	list, _ := schema["x-kubernetes-validations"].([]any)
	rules := []string{}
	for _, entry := range list {
		rule, _ := entry.(map[string]any)["rule"].(string)
		rules = append(rules, strings.TrimSpace(rule))
	}
	sort.Strings(rules)
	return rules
}

// join writes attributes as the files do.
func join(attributes map[string]any) string {
	parts := make([]string, 0, len(attributes))
	for name, value := range attributes {
		parts = append(parts, name+"="+encode(value))
	}
	sort.Strings(parts)
	return strings.Join(parts, ";")
}

// encode writes JSON as the files do: sorted keys, a space after commas and colons, no
// HTML escaping.
func encode(value any) string {
	switch typed := value.(type) {
	case map[string]any:
		parts := make([]string, 0, len(typed))
		for name, field := range typed {
			parts = append(parts, encode(name)+": "+encode(field))
		}
		sort.Strings(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, 0, len(typed))
		for _, entry := range typed {
			parts = append(parts, encode(entry))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []string:
		parts := make([]any, 0, len(typed))
		for _, entry := range typed {
			parts = append(parts, entry)
		}
		return encode(parts)
	default:
		text := &strings.Builder{}
		encoder := json.NewEncoder(text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(value); err != nil {
			return err.Error()
		}
		return strings.TrimSuffix(text.String(), "\n")
	}
}
