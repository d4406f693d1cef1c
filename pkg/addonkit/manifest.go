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

// ID is what tells one manifest from another.
type ID struct {
	schema.GroupVersionKind
	Namespace, Name string
}

// String is "Deployment default/web".
func (id ID) String() string {
	if id.Namespace == "" {
		return id.Kind + " " + id.Name
	}
	return id.Kind + " " + id.Namespace + "/" + id.Name
}

// APIVersion is "apps/v1".
func (id ID) APIVersion() string { return id.GroupVersion().String() }

// Resource names the object as ManifestWorks do; the plural is guessed from the kind,
// which is right for every kind of Kubernetes and every regular one.
func (id ID) Resource() workv1.ResourceIdentifier {
	plural, _ := apimeta.UnsafeGuessKindToResource(id.GroupVersionKind)
	return workv1.ResourceIdentifier{Group: id.Group, Resource: plural.Resource, Namespace: id.Namespace, Name: id.Name}
}

// Manifest is one object that an add-on deploys.
type Manifest struct {
	ID
	// Object is the manifest, and Raw its JSON.
	Object *unstructured.Unstructured
	Raw    []byte
	// Size is that of the JSON where Raw only stands for it, else 0.
	Size int
}

// Bytes is the size of its JSON.
func (m Manifest) Bytes() int { return cmp.Or(m.Size, len(m.Raw)) }

// Read takes apart what an add-on renders. Of two with the same identity the later
// one counts, at the place of the earlier. An error names the manifest by its place
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

// ReadYAML reads what a file renders to: any number of objects, as YAML or JSON. An error
// names the object by its place and holds nothing of the text.
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
			return nil, fmt.Errorf("object %d is no YAML as it is rendered; look at its indentation, and print values by json or quote", number)
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

// Parse reads one manifest. Creation times that Go types write though there are none
// are left out.
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

// dropTimes leaves out creation times that are null, also of templates.
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

// Marked tells whether a manifest carries a key as annotation or as label, and its
// value.
func (m Manifest) Marked(key string) (string, bool) {
	if value, ok := m.Object.GetAnnotations()[key]; ok {
		return value, true
	}
	value, ok := m.Object.GetLabels()[key]
	return value, ok
}

// Hook tells whether a manifest runs before the add-on goes: a Job or Pod with the
// mark.
func (m Manifest) Hook() bool {
	_, marked := m.Marked(addonv1alpha1.AnnotationPreDelete)
	return marked && (m.isJob() || m.isPod())
}

func (m Manifest) isJob() bool { return m.Kind == "Job" && m.Group == "batch" }
func (m Manifest) isPod() bool { return m.Kind == "Pod" && m.Group == "" }

// Orphaned tells whether the object stays when the add-on goes.
func (m Manifest) Orphaned() bool {
	_, ok := m.Object.GetAnnotations()[addonv1alpha1.AnnotationDeletionOrphan]
	return ok
}
