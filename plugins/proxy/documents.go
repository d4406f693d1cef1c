// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// documents returns kubectl's words and the format of one list of all clusters: "" unless the words ask for JSON or YAML.
// kubectl prints JSON in both cases.
func documents(words []string) ([]string, ui.Format) {
	out := slices.Clone(words)
	for i, word := range words {
		if word == "--" {
			break
		}
		name, value, with := strings.Cut(word, "=")
		at := i
		switch {
		case (name == "-o" || name == "--output") && with:
		case (name == "-o" || name == "--output") && i+1 < len(words):
			at, value = i+1, words[i+1]
		case strings.HasPrefix(word, "-o") && !strings.HasPrefix(word, "--"):
			value = strings.TrimPrefix(word, "-o")
		default:
			continue
		}
		if format := ui.Format(value); format == ui.JSON || format == ui.YAML {
			out[at] = strings.TrimSuffix(words[at], value) + string(ui.JSON)
			return out, format
		}
	}
	return words, ""
}

// printList prints the objects of all clusters as one list. Each tells its cluster by an annotation.
func printList(u *ui.UI, answers []answer, format ui.Format) error {
	items := []any{}
	for i := range answers {
		a := &answers[i]
		found, err := a.objects()
		if err != nil {
			return err
		}
		items = append(items, found...)
	}
	return u.Document(format, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items})
}

// objects returns the objects that kubectl printed. What does not read as one is an error: a list with less in it than
// there is would mislead.
func (a *answer) objects() (out []any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(a.out.Bytes()))
	decoder.UseNumber()
	for decoder.More() {
		var one map[string]any
		if err := decoder.Decode(&one); err != nil {
			return nil, fmt.Errorf("reading what kubectl prints on %s: %w", a.cluster, err)
		}
		items, list := one["items"].([]any)
		if kind, _ := one["kind"].(string); !list || !strings.HasSuffix(kind, "List") {
			items = []any{one}
		}
		for _, item := range items {
			a.mark(item)
		}
		out = append(out, items...)
	}
	return out, nil
}

// mark annotates an object with its cluster.
func (a *answer) mark(item any) {
	object, _ := item.(map[string]any)
	if object == nil {
		return
	}
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		object["metadata"] = metadata
	}
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations == nil {
		annotations = map[string]any{}
		metadata["annotations"] = annotations
	}
	annotations[clusterv1.LabelClusterName] = a.cluster
}
