// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"io"

	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// errMoreDocuments and errExpands are faults of a document that a YAML parser would ignore.
var (
	errMoreDocuments = errors.New("a second document begins in it; begin it with a line that holds --- and nothing else")
	errExpands       = errors.New("its aliases make it larger than 4 MiB, or contain themselves; write the values out")
)

// checkYAML refuses documents of which only a part would be read, or that expand without
// bounds when their aliases are resolved: a few bytes can name one long text a million times.
// Documents that cannot do so are not parsed.
func checkYAML(document []byte) error {
	risky := bytes.IndexByte(document, '*') >= 0
	for _, mark := range []string{"\n---", "\n..."} {
		risky = risky || bytes.Contains(document, []byte(mark))
	}
	if !risky {
		return nil
	}
	decoder := goyaml.NewDecoder(bytes.NewReader(document))
	var node, second goyaml.Node
	if err := decoder.Decode(&node); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return errMoreDocuments
	}
	if expandedSize(&node, map[*goyaml.Node]int{}) > maxDocument {
		return errExpands
	}
	return nil
}

// expandedSize estimates the size of a node in bytes with its aliases resolved, at most
// maxDocument+1. A node that contains itself has that size.
func expandedSize(n *goyaml.Node, anchored map[*goyaml.Node]int) int {
	if n.Kind == goyaml.AliasNode {
		n = n.Alias
	}
	if w, known := anchored[n]; known {
		return w
	}
	if n.Anchor != "" {
		anchored[n] = maxDocument + 1
	}
	w := len(n.Value) + len(`"",`)
	for _, child := range n.Content {
		if w += expandedSize(child, anchored); w > maxDocument {
			return maxDocument + 1
		}
	}
	if n.Anchor != "" {
		anchored[n] = w
	}
	return w
}
