// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"io"

	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// errMoreDocuments and errExpands are what is wrong with a document that a YAML
// parser would read without a word.
var (
	errMoreDocuments = errors.New("a second document begins in it; begin it with a line that holds --- and nothing else")
	errExpands       = errors.New("its aliases make it larger than 4 MiB, or contain themselves; write the values out")
)

// checkYAML refuses documents that would be read in part, or that grow beyond
// all bounds when their aliases are written out: a few bytes can name one long
// text a million times. Whatever cannot do that is not looked at.
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
	if weight(&node, map[*goyaml.Node]int{}) > maxDocument {
		return errExpands
	}
	return nil
}

// weight is about how many bytes a node has with its aliases written out, at
// most one more than maxDocument. A node that contains itself has that many.
func weight(n *goyaml.Node, anchored map[*goyaml.Node]int) int {
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
		if w += weight(child, anchored); w > maxDocument {
			return maxDocument + 1
		}
	}
	if n.Anchor != "" {
		anchored[n] = w
	}
	return w
}
