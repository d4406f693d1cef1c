// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"

	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// resultVersion is the apiVersion of everything that -o json prints.
const resultVersion = "cli.ocm/v1"

// Format is the value of -o.
type Format string

// The formats without an argument; jsonpath= and go-template= carry one.
const (
	Text Format = ""
	Wide Format = "wide"
	JSON Format = "json"
	YAML Format = "yaml"
	Name Format = "name"
)

const (
	jsonPathPrefix   = "jsonpath="
	goTemplatePrefix = "go-template="
)

// Check returns an error if the format does not exist or its expression does not parse.
func (f Format) Check() error {
	switch {
	case f == Text, f == Wide, f == JSON, f == YAML, f == Name:
		return nil
	case strings.HasPrefix(string(f), jsonPathPrefix):
		if err := jsonpath.New("o").Parse(string(f[len(jsonPathPrefix):])); err != nil {
			return badFormat(f, err.Error())
		}
		return nil
	case strings.HasPrefix(string(f), goTemplatePrefix):
		if _, err := template.New("o").Parse(string(f[len(goTemplatePrefix):])); err != nil {
			return badFormat(f, err.Error())
		}
		return nil
	}
	return badFormat(f, "there is no such format")
}

func badFormat(f Format, cause string) error {
	return &fleet.Error{Kind: fleet.Usage, Message: fmt.Sprintf("wrong output format %q", string(f)), Cause: cause,
		Fix: fleet.Advice("use one of json, yaml, name, wide, jsonpath=EXPRESSION, go-template=TEMPLATE")}
}

// Machine reports whether the output is meant for programs.
func (f Format) Machine() bool { return f != Text && f != Wide }

// Result prints value in a machine-readable format. kind is the kind of the document;
// names are the lines of -o name.
func (u *UI) Result(f Format, kind string, value any, names []string) error {
	if f == Name {
		for _, n := range names {
			u.Say("%s", n)
		}
		return nil
	}
	document, err := envelope(kind, value)
	if err != nil {
		return err
	}
	switch {
	case f == JSON:
		return writeJSON(u.Streams.Out, document)
	case f == YAML:
		return u.writeYAML(document)
	case strings.HasPrefix(string(f), jsonPathPrefix):
		p := jsonpath.New("o").AllowMissingKeys(true)
		if err := p.Parse(string(f[len(jsonPathPrefix):])); err != nil {
			return badFormat(f, err.Error())
		}
		return wrapOutput(p.Execute(u.Streams.Out, document))
	case strings.HasPrefix(string(f), goTemplatePrefix):
		t, err := template.New("o").Parse(string(f[len(goTemplatePrefix):]))
		if err != nil {
			return badFormat(f, err.Error())
		}
		return wrapOutput(t.Execute(u.Streams.Out, document))
	}
	return badFormat(f, "there is no such format")
}

// envelope turns value into a JSON object with apiVersion and kind. A list becomes its
// items.
func envelope(kind string, value any) (map[string]any, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding result: %w", err)
	}
	document := map[string]any{}
	if string(raw) == "null" {
		document["items"] = []any{}
	} else if bytes.HasPrefix(raw, []byte("[")) {
		var items []any
		if err := json.Unmarshal(raw, &items); err != nil {
			return nil, fmt.Errorf("encoding result: %w", err)
		}
		document["items"] = items
	} else if err := json.Unmarshal(raw, &document); err != nil {
		return nil, fmt.Errorf("encoding result: %w", err)
	}
	if items, ok := document["items"]; ok && items == nil {
		document["items"] = []any{}
	}
	document["apiVersion"], document["kind"] = resultVersion, kind
	return document, nil
}

func writeJSON(w io.Writer, document any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return wrapOutput(e.Encode(document))
}

func (u *UI) writeYAML(document any) error {
	raw, err := yaml.Marshal(document)
	if err != nil {
		return fmt.Errorf("encoding result: %w", err)
	}
	_, err = u.Streams.Out.Write(raw)
	return wrapOutput(err)
}

// Documents prints objects as YAML documents for kubectl.
func (u *UI) Documents(objects []map[string]any) error {
	for _, o := range objects {
		if _, err := io.WriteString(u.Streams.Out, "---\n"); err != nil {
			return wrapOutput(err)
		}
		if err := u.writeYAML(o); err != nil {
			return err
		}
	}
	return nil
}

func wrapOutput(err error) error {
	if err != nil {
		return fmt.Errorf("writing output: %w", err)
	}
	return nil
}
