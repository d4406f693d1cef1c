// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kubectl-ocm/kubectl-ocm/internal/packed"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Kind configures what is kept of the objects of one kind.
type Kind struct {
	// Example is an empty object of the kind, or Metadata of it if metadata is enough.
	// Metadata is always packed.
	Example reconcile.Object
	// Namespace, Label and Field limit which objects are watched; empty and nil mean
	// all.
	Namespace string
	Label     labels.Selector
	Field     fields.Selector
	// Transform changes an object before it is kept; nil means Trim. It may be given an
	// object that it has already changed.
	Transform toolscache.TransformFunc
	// Packed keeps each object in one string, which takes a fraction of the memory and
	// some microseconds for every event and read. It is for kinds with thousands of
	// objects. Owner references are dropped.
	Packed bool
}

// query adds the limits to the options of a list or watch.
func (k Kind) query(o metav1.ListOptions) metav1.ListOptions {
	if k.Label != nil {
		o.LabelSelector = k.Label.String()
	}
	if k.Field != nil {
		o.FieldSelector = k.Field.String()
	}
	return o
}

// Metadata returns an example object for kinds of which only metadata is watched.
func Metadata(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(gvk)
	return o
}

// MetadataList returns an empty list to read such objects into.
func MetadataList(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return l
}

func isMetadata(o runtime.Object) bool {
	switch o.(type) {
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return true
	}
	return false
}

// kindOf returns the kind of an object or list: for metadata the kind that the object
// itself names, otherwise the one that the scheme has for its Go type.
func kindOf(o runtime.Object, scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	if isMetadata(o) {
		return o.GetObjectKind().GroupVersionKind(), nil
	}
	kinds, _, err := scheme.ObjectKinds(o)
	switch {
	case err != nil:
		return schema.GroupVersionKind{}, fmt.Errorf("looking up the kind of %T: %w", o, err)
	case len(kinds) != 1:
		return schema.GroupVersionKind{}, fmt.Errorf("looking up the kind of %T: the scheme has %d for it", o, len(kinds))
	}
	return kinds[0], nil
}

// metadataSource reads metadata, in protobuf.
func (m *Manager) metadataSource(kind schema.GroupVersionKind, limits Kind) *toolscache.ListWatch {
	resource := m.client.Resource(reconcile.ResourceOf(kind)).Namespace(limits.Namespace)
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, limits.query(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			return resource.Watch(ctx, limits.query(o))
		},
	}
}

// wholeSource reads whole objects, those of Kubernetes' own kinds in protobuf.
func (m *Manager) wholeSource(kind schema.GroupVersionKind, limits Kind) (*toolscache.ListWatch, error) {
	config := rest.CopyConfig(m.o.Config)
	group := kind.GroupVersion()
	config.GroupVersion, config.APIPath = &group, "/apis"
	if group.Group == "" {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(m.o.Scheme).WithoutConversion()
	if _, binary := limits.Example.(runtime.ProtobufMarshaller); binary {
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	client, err := rest.RESTClientForConfigAndClient(config, m.http)
	if err != nil {
		return nil, fmt.Errorf("making the client of %s: %w", kind.Kind, err)
	}
	resource, parameters := reconcile.ResourceOf(kind).Resource, runtime.NewParameterCodec(m.o.Scheme)
	get := func(o metav1.ListOptions) *rest.Request {
		o = limits.query(o)
		return client.Get().NamespaceIfScoped(limits.Namespace, limits.Namespace != "").Resource(resource).VersionedParams(&o, parameters)
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := m.o.Scheme.New(group.WithKind(kind.Kind + "List"))
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", resource, err)
			}
			return list, get(o).Do(ctx).Into(list)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
			o.Watch = true
			return get(o).Watch(ctx)
		},
	}, nil
}

// form is how objects are kept: as values of type E.
type form[E comparable] struct {
	pack func(reconcile.Object) E
	// unpack restores the object; if it creates a new one, then without kind, namespace
	// and name. Its result must not be changed.
	unpack func(E) reconcile.Object
}

// plainForm keeps objects unchanged.
var plainForm = form[reconcile.Object]{
	pack:   func(o reconcile.Object) reconcile.Object { return o },
	unpack: func(o reconcile.Object) reconcile.Object { return o },
}

// metadataForm packs metadata; all kinds share one dictionary.
func (m *Manager) metadataForm() form[string] {
	return form[string]{
		pack: func(o reconcile.Object) string {
			p, _ := o.(*metav1.PartialObjectMetadata)
			return m.words.PackMeta(&p.ObjectMeta)
		},
		unpack: func(data string) reconcile.Object {
			o := &metav1.PartialObjectMetadata{}
			m.words.UnpackMeta(data, &o.ObjectMeta)
			return o
		},
	}
}

// wholeForm packs whole objects of the type of example.
func wholeForm(example reconcile.Object) (form[string], error) {
	if err := packed.Packable(example); err != nil {
		return form[string]{}, fmt.Errorf("packing %T: %w", example, err)
	}
	t, words := reflect.TypeOf(example).Elem(), &packed.Dictionary{}
	return form[string]{
		pack: func(o reconcile.Object) string { return words.Pack(o) },
		unpack: func(data string) reconcile.Object {
			o, _ := reflect.New(t).Interface().(reconcile.Object)
			words.Unpack(data, o)
			return o
		},
	}, nil
}
