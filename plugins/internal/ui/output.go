// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"

	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
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

// Check returns an error if the format does not exist or its expression does not parse.
func (f Format) Check() error {
	_, err := f.printer()
	return err
}

// printer returns what prints a document; nil for formats that print none.
func (f Format) printer() (func(io.Writer, any) error, error) {
	switch f {
	case Text, Wide, Name:
		return nil, nil
	case JSON:
		return writeJSON, nil
	case YAML:
		return writeYAML, nil
	}
	switch kind, expression, ok := strings.Cut(string(f), "="); {
	case ok && kind == "jsonpath":
		p := jsonpath.New("o").AllowMissingKeys(true)
		if err := p.Parse(expression); err != nil {
			return nil, badFormat(f, err.Error())
		}
		return p.Execute, nil
	case ok && kind == "go-template":
		t, err := template.New("o").Parse(expression)
		if err != nil {
			return nil, badFormat(f, err.Error())
		}
		return t.Execute, nil
	}
	return nil, badFormat(f, "there is no such format")
}

// maxShown is how much of a wrong value is shown, in bytes.
const maxShown = 60

func badFormat(f Format, cause string) error {
	return &fleet.Error{Kind: fleet.Usage, Message: fmt.Sprintf("wrong value %q for --output", excerpt.Of(string(f), maxShown)), Cause: cause,
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
	printer, err := f.printer()
	if err != nil {
		return err
	}
	document, err := envelope(kind, value)
	if err != nil {
		return err
	}
	return wrapOutput(printer(u.Streams.Out, document))
}

// envelope turns value into a JSON object with apiVersion and kind. A list becomes its
// items.
func envelope(kind string, value any) (map[string]any, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encoding result: %w", err)
	}
	var content any
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, fmt.Errorf("encoding result: %w", err)
	}
	document, ok := content.(map[string]any)
	if !ok {
		document = map[string]any{"items": content}
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
	return e.Encode(document)
}

func writeYAML(w io.Writer, document any) error {
	raw, err := yaml.Marshal(document)
	if err != nil {
		return fmt.Errorf("encoding result: %w", err)
	}
	_, err = w.Write(raw)
	return err
}

// Document prints one object as it is, as JSON or YAML.
func (u *UI) Document(f Format, object map[string]any) error {
	printer, err := f.printer()
	if err != nil {
		return err
	}
	return wrapOutput(printer(u.Streams.Out, object))
}

// Documents prints objects as YAML documents for kubectl.
func (u *UI) Documents(objects []map[string]any) error {
	for _, o := range objects {
		_, err := io.WriteString(u.Streams.Out, "---\n")
		if err == nil {
			err = writeYAML(u.Streams.Out, o)
		}
		if err != nil {
			return wrapOutput(err)
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
