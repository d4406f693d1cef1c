// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
)

// definition reads the definition with a full name such as
// placements.cluster.open-cluster-management.io.
func definition(name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	u, err := crd.Any(name)
	if err != nil {
		return nil, err
	}
	d := &apiextensionsv1.CustomResourceDefinition{}
	return d, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d)
}

// kindTable renders how a kind is served and what "kubectl get" shows of it.
func kindTable(name string) (string, error) {
	d, err := definition(name)
	if err != nil {
		return "", err
	}
	var versions, columns []string
	for _, v := range d.Spec.Versions {
		text := code(v.Name)
		if v.Storage {
			text += " (stored)"
			for _, c := range v.AdditionalPrinterColumns {
				columns = append(columns, c.Name)
			}
		}
		if v.Served {
			versions = append(versions, text)
		}
	}
	scope := "namespaced"
	if d.Spec.Scope == apiextensionsv1.ClusterScoped {
		scope = "cluster"
	}
	names := append([]string{d.Spec.Names.Plural}, d.Spec.Names.ShortNames...)
	rows := [][]string{{"versions", strings.Join(versions, ", ")}, {"scope", scope}, {"names for kubectl", code(strings.Join(names, "`, `"))}}
	if len(columns) > 0 {
		rows = append(rows, []string{"columns of kubectl get", strings.Join(columns, ", ")})
	}
	return table([]string{"group", code(d.Spec.Group)}, rows), nil
}

// fieldTables renders a table for each top-level field of a version of a kind. Fields
// below the folded paths are omitted: another page documents them.
func fieldTables(name, version string, folded []string) (string, error) {
	d, err := definition(name)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 {
		return "", errors.New("there is no such version")
	}
	schema := d.Spec.Versions[i].Schema.OpenAPIV3Schema
	var parts []string
	for _, top := range slices.Sorted(maps.Keys(schema.Properties)) {
		if top == "apiVersion" || top == "kind" || top == "metadata" {
			continue
		}
		var rows [][]string
		field(top, schema.Properties[top], slices.Contains(schema.Required, top), folded, &rows)
		parts = append(parts, table([]string{"field", "type", "default", "validation", "meaning"}, rows))
	}
	return strings.Join(parts, "\n"), nil
}

// field adds the rows of a field and of all fields below it.
func field(path string, s apiextensionsv1.JSONSchemaProps, required bool, folded []string, rows *[][]string) {
	typ, below := typeOf(s)
	value := ""
	if s.Default != nil {
		value = string(s.Default.Raw)
	}
	name := path[strings.LastIndex(path, ".")+1:]
	*rows = append(*rows, []string{code(path), code(typ), code(value), strings.Join(validations(s, required), "; "), meaning(name, s, value != "")})
	if below == nil || slices.Contains(folded, path) {
		return
	}
	if strings.HasPrefix(typ, "[]") {
		path += "[]"
	} else if strings.HasPrefix(typ, "map") {
		path += "[key]"
	}
	for _, name := range slices.Sorted(maps.Keys(below.Properties)) {
		field(path+"."+name, below.Properties[name], slices.Contains(below.Required, name), folded, rows)
	}
}

var (
	// spokenDefault matches a sentence that repeats the default column.
	spokenDefault = regexp.MustCompile(` The default is \S+\.$`)
	// preposition matches what follows the name of a field that is part of the sentence.
	preposition = regexp.MustCompile(`^(of|in|on|at|by|for|from|to|with|under|that|which|as|where) `)
	verb        = regexp.MustCompile(`^(is|are) `)
)

// meaning returns the description of a field for a table that already names it: without
// the name that Go requires at the beginning.
func meaning(name string, s apiextensionsv1.JSONSchemaProps, hasDefault bool) string {
	text := strings.Join(strings.Fields(s.Description), " ")
	if hasDefault {
		text = spokenDefault.ReplaceAllString(text, "")
	}
	rest, named := strings.CutPrefix(text, name+" ")
	switch {
	case named && preposition.MatchString(rest) && strings.ToLower(name) != name:
	case named && preposition.MatchString(rest):
		text = capital(text)
	case named:
		if text = verb.ReplaceAllString(rest, ""); !slices.Contains(enum(s), strings.Fields(text + " ")[0]) {
			text = capital(text)
		}
	default:
		text = capital(text)
	}
	text = prose(text)
	for _, value := range enum(s) {
		said := regexp.MustCompile(`(^|[ (])(an? |the )?(` + regexp.QuoteMeta(value) + `)([ .,:;)]|$)`)
		text = said.ReplaceAllStringFunc(text, func(match string) string {
			if m := said.FindStringSubmatch(match); m[2] == "" {
				return m[1] + code(m[3]) + m[4]
			}
			return match // a word that the value is called by
		})
	}
	return text
}

func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// enum returns the values that a field may have, if there are few.
func enum(s apiextensionsv1.JSONSchemaProps) []string {
	var values []string
	for _, v := range s.Enum {
		values = append(values, strings.Trim(string(v.Raw), `"`))
	}
	return values
}

// wellKnown are Kubernetes types that a reader knows, by their properties.
var wellKnown = map[string]string{
	"matchExpressions matchLabels": "LabelSelector",
	"key operator values":          "LabelSelectorRequirement",
	"lastTransitionTime message observedGeneration reason status type": "Condition",
	"effect key operator tolerationSeconds value":                      "Toleration",
	"claims limits requests":                                           "ResourceRequirements",
}

// quantity is the beginning of the pattern of a resource.Quantity.
const quantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|`

// patterns are well-known patterns that are long.
var patterns = map[string]string{
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`:                                                                                 "a DNS label",
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`:                                             "a DNS subdomain",
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`: "a label key",
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`:   "a label key",
}

// typeOf returns the name of the type of a field, and the schema of the object whose
// fields get rows of their own, if there is one.
func typeOf(s apiextensionsv1.JSONSchemaProps) (string, *apiextensionsv1.JSONSchemaProps) {
	switch {
	case s.XIntOrString && strings.HasPrefix(s.Pattern, quantity):
		return "Quantity", nil
	case s.XIntOrString:
		return "int or string", nil
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil:
		typ, below := typeOf(*s.Items.Schema)
		return "[]" + typ, below
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		typ, below := typeOf(*s.AdditionalProperties.Schema)
		return "map[string]" + typ, below
	case s.Format == "date-time":
		return "time", nil
	case len(s.Properties) > 0:
		if known := wellKnown[strings.Join(slices.Sorted(maps.Keys(s.Properties)), " ")]; known != "" {
			return known, nil
		}
	case s.Type == "object":
		return "any object", nil
	}
	return s.Type, &s
}

// validations returns what the API server validates.
func validations(s apiextensionsv1.JSONSchemaProps, required bool) []string {
	var all []string
	if required {
		all = append(all, "required")
	}
	all = append(all, bounds(s)...)
	for _, rule := range s.XValidations {
		all = append(all, prose(cmp.Or(rule.Message, code(rule.Rule))))
	}
	if len(s.XListMapKeys) > 0 {
		all = append(all, "unique by "+strings.Join(s.XListMapKeys, ", "))
	}
	if s.Items != nil && s.Items.Schema != nil {
		for _, text := range bounds(*s.Items.Schema) {
			all = append(all, "each "+text)
		}
	}
	return all
}

// bounds returns the simple restrictions of a value.
func bounds(s apiextensionsv1.JSONSchemaProps) []string {
	var all []string
	if values := enum(s); len(values) > 0 {
		all = append(all, "one of "+code(strings.Join(values, "`, `")))
	}
	switch known := patterns[s.Pattern]; {
	case s.Pattern == "", strings.HasPrefix(s.Pattern, quantity):
	case known != "":
		all = append(all, known)
	default:
		all = append(all, "matches "+code(s.Pattern))
	}
	if s.Minimum != nil {
		all = append(all, fmt.Sprintf("at least %v", *s.Minimum))
	}
	if s.Maximum != nil {
		all = append(all, fmt.Sprintf("at most %v", *s.Maximum))
	}
	for _, b := range []struct {
		format string
		limit  *int64
	}{
		{"at least %d characters", s.MinLength}, {"at most %d characters", s.MaxLength}, {"at least %d items", s.MinItems},
		{"at most %d items", s.MaxItems}, {"at least %d entries", s.MinProperties}, {"at most %d entries", s.MaxProperties},
	} {
		switch {
		case b.limit == nil:
		case *b.limit == 1 && strings.HasPrefix(b.format, "at least"):
			all = append(all, "not empty")
		default:
			all = append(all, fmt.Sprintf(b.format, *b.limit))
		}
	}
	return all
}
