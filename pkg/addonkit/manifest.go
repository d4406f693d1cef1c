// SPDX-License-Identifier: Apache-2.0

package addonkit

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// ID identifies a manifest.
type ID struct {
	schema.GroupVersionKind
	Namespace, Name string
}

// String formats the ID as "Deployment default/web".
func (id ID) String() string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}

// APIVersion returns, for example, "apps/v1".
func (id ID) APIVersion() string { return id.GroupVersion().String() }

// Resource returns the object's identifier in ManifestWorks. The plural is guessed from the
// kind, which is right for all kinds of Kubernetes and all with a regular plural.
func (id ID) Resource() workv1.ResourceIdentifier {
	plural, _ := apimeta.UnsafeGuessKindToResource(id.GroupVersionKind)
	return workv1.ResourceIdentifier{Group: id.Group, Resource: plural.Resource, Namespace: id.Namespace, Name: id.Name}
}

// Manifest is one object that an add-on deploys.
type Manifest struct {
	ID
	// Object is the manifest, Raw its JSON.
	Object *unstructured.Unstructured
	Raw    []byte
	// Size is the size of the JSON if Raw is only a placeholder for it, else 0.
	Size int
}

// Bytes returns the size of the manifest's JSON.
func (m Manifest) Bytes() int { return cmp.Or(m.Size, len(m.Raw)) }

// Read decodes what an add-on renders. Of two manifests with the same identity the later
// one counts, in the position of the earlier. An error names the manifest by its position
// and what it lacks.
func Read(objects []runtime.Object) ([]Manifest, error) {
	out := make([]Manifest, 0, len(objects))
	at := map[ID]int{}
	for i, o := range objects {
		raw, err := json.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("encoding manifest %d: %w", i, err)
		}
		m, err := Parse(raw)
		if err != nil {
			return nil, fmt.Errorf("manifest %d: %w", i, err)
		}
		if before, again := at[m.ID]; again {
			out[before] = m
			continue
		}
		at[m.ID] = len(out)
		out = append(out, m)
	}
	return out, nil
}

// ReadYAML reads any number of objects from rendered YAML or JSON. An error names the
// object by its position and quotes none of the text.
func ReadYAML(text io.Reader) ([]runtime.Object, error) {
	var out []runtime.Object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(text))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("splitting it into objects: %w", err)
		}
		raw, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("object %d is not valid YAML after rendering; check its indentation, and print values with json or quote", number)
		}
		if string(raw) == "null" {
			continue
		}
		u, err := manifest.Decode(raw)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", number, err)
		}
		out = append(out, u)
	}
}

// Parse decodes one manifest. Null creation times, which Go types encode, are left out.
func Parse(raw []byte) (Manifest, error) {
	u, err := manifest.Decode(raw)
	if err != nil {
		return Manifest{}, err
	}
	dropTimes(u.Object)
	if raw, err = json.Marshal(u.Object); err != nil {
		return Manifest{}, fmt.Errorf("encoding %s: %w", u.GetKind(), err)
	}
	id := ID{GroupVersionKind: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	return Manifest{ID: id, Object: u, Raw: raw}, nil
}

// dropTimes removes null creation times, including those of templates.
func dropTimes(v any) {
	switch v := v.(type) {
	case map[string]any:
		if t, ok := v["creationTimestamp"]; ok && t == nil {
			delete(v, "creationTimestamp")
		}
		for _, inner := range v {
			dropTimes(inner)
		}
	case []any:
		for _, inner := range v {
			dropTimes(inner)
		}
	}
}

// Marked returns the value of an annotation or label of the manifest, and whether it has
// one.
func (m Manifest) Marked(key string) (string, bool) {
	if value, ok := m.Object.GetAnnotations()[key]; ok {
		return value, true
	}
	value, ok := m.Object.GetLabels()[key]
	return value, ok
}

// Hook reports whether a manifest runs before the add-on is removed: a Job or Pod with the
// mark.
func (m Manifest) Hook() bool {
	_, marked := m.Marked(addonv1alpha1.AnnotationPreDelete)
	return marked && (m.Kind == "Job" && m.Group == "batch" || m.Kind == "Pod" && m.Group == "")
}

// Orphaned reports whether the object stays when the add-on is removed.
func (m Manifest) Orphaned() bool {
	_, ok := m.Object.GetAnnotations()[addonv1alpha1.AnnotationDeletionOrphan]
	return ok
}
