// SPDX-License-Identifier: Apache-2.0

package templated

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// maxKnown is how many contents are held, also such as are written over. When there are
// more, all are forgotten, and read again when they are needed.
const maxKnown = 2048

// contents tells what a configuration says now; false where there is none.
type contents interface {
	Get(addonv1alpha1.AddOnConfig) (config.Content, bool)
}

// family knows which instances are made of templates, and of what.
type family struct {
	client   dynamic.Interface
	clock    clock.PassiveClock
	contents contents

	mu sync.Mutex
	// known are contents by key, and the last one of each object by its AddOnConfig.
	known map[any]any
	// listing are the add-ons that are made of templates.
	listing map[string]bool
	// waiting are the instances that are to have what an object does not say now.
	waiting map[addonv1alpha1.AddOnConfig]map[reconcile.Key]bool
}

func newFamily(client dynamic.Interface, clk clock.PassiveClock, c contents) *family {
	return &family{
		client: client, clock: clk, contents: c, known: map[any]any{},
		listing: map[string]bool{}, waiting: map[addonv1alpha1.AddOnConfig]map[reconcile.Key]bool{},
	}
}

// list notes whether an add-on is made of templates; true when that is news.
func (f *family) list(addOn string, listed bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listing[addOn] == listed {
		return false
	}
	delete(f.listing, addOn)
	if listed {
		f.listing[addOn] = true
	}
	return true
}

// lists tells whether an add-on is made of templates, with a default or without.
// Contract: addon.md 4.10.
func lists(addOn *addonv1alpha1.ClusterManagementAddOn) bool {
	return addOn != nil && slices.ContainsFunc(addOn.Spec.SupportedConfigs, func(c addonv1alpha1.ConfigMeta) bool {
		return c.ConfigGroupResource == templates
	})
}

// serves tells whether an instance is made of a template.
func (f *family) serves(a *addonv1alpha1.ManagedClusterAddOn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listing[a.Name] || slices.Contains(a.Status.SupportedConfigs, templates)
}

// find is the add-on of an instance by what it is to have; false where that is not known,
// or not there any more.
func (f *family) find(a *addonv1alpha1.ManagedClusterAddOn) (addonkit.AddOn, bool) {
	if !f.serves(a) {
		return nil, false
	}
	n := &instance{name: a.Name}
	for _, ref := range a.Status.ConfigReferences {
		spec, err := f.read(a, ref)
		if err != nil {
			return &broken{instance{name: a.Name}, err}, true
		}
		if spec != nil && ref.DesiredConfig != nil {
			n.contents = append(n.contents, ref.Resource, config.Referent(ref).Namespace, config.Referent(ref).Name, ref.DesiredConfig.SpecHash)
		}
		switch spec := spec.(type) {
		case *addonv1alpha1.AddOnTemplateSpec:
			if n.template == nil {
				n.template = &addonv1alpha1.AddOnTemplate{ObjectMeta: named(config.Referent(ref)), Spec: *spec}
			}
		case *addonv1alpha1.AddOnDeploymentConfigSpec:
			n.configs = append(n.configs, &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: named(config.Referent(ref)), Spec: *spec})
		case later:
			return nil, false
		}
	}
	switch {
	case n.template == nil && a.DeletionTimestamp != nil:
		return &broken{instance{name: a.Name}, fmt.Errorf("ManagedClusterAddOn %s/%s: status.configReferences: names no AddOnTemplate", a.Namespace, a.Name)}, true
	case n.template == nil:
		return nil, false
	case len(n.template.Spec.Registration) > 0:
		return registered{n, f.client, f.clock}, true
	}
	return n, true
}

// later stands for content that its object does not have yet, or has no more.
type later struct{}

// read returns the spec that a reference names; nil for one of another kind. What is
// being deleted may have what there is, so that its hooks run.
func (f *family) read(a *addonv1alpha1.ManagedClusterAddOn, ref addonv1alpha1.ConfigReference) (any, error) {
	if !slices.Contains(supported, ref.ConfigGroupResource) {
		return nil, nil
	}
	at := addonv1alpha1.AddOnConfig{ConfigGroupResource: ref.ConfigGroupResource, ConfigReferent: config.Referent(ref)}
	hash, last := "", a.DeletionTimestamp != nil
	if ref.DesiredConfig != nil {
		hash = ref.DesiredConfig.SpecHash
	}
	if spec, ok := f.recall(key{ref.ConfigGroupResource, hash}); ok && hash != "" {
		return spec, nil
	}
	if hash == "" && !last {
		return nil, fmt.Errorf("%s: does not exist; create it, or name another one", show(at))
	}
	if last {
		return f.lastOf(at)
	}
	who := reconcile.Key{Namespace: a.Namespace, Name: a.Name}
	f.wait(at, who, true) // before the look: what comes after it brings the instance up
	content, there := f.contents.Get(at)
	switch {
	case !there:
		return nil, fmt.Errorf("%s: does not exist any more, and what runs stays as it is; create it again, or name another one", show(at))
	case content.Hash != hash:
		return later{}, nil
	}
	f.wait(at, who, false)
	return f.decode(at, content)
}

// lastOf is what an object says, or said before it went.
func (f *family) lastOf(at addonv1alpha1.AddOnConfig) (any, error) {
	if content, there := f.contents.Get(at); there {
		return f.decode(at, content)
	}
	if spec, held := f.recall(at); held {
		return spec, nil
	}
	return nil, fmt.Errorf("%s: does not exist", show(at))
}

// key names a content.
type key struct {
	kind addonv1alpha1.ConfigGroupResource
	hash string
}

// decode reads a content, and holds it.
func (f *family) decode(at addonv1alpha1.AddOnConfig, c config.Content) (any, error) {
	var spec any = &addonv1alpha1.AddOnDeploymentConfigSpec{}
	if at.ConfigGroupResource == templates {
		spec = &addonv1alpha1.AddOnTemplateSpec{}
	}
	if err := json.Unmarshal([]byte(c.Spec), spec); err != nil {
		return nil, fmt.Errorf("%s: spec: %w", show(at), err)
	}
	f.hold(key{at.ConfigGroupResource, c.Hash}, spec)
	f.hold(at, spec)
	return spec, nil
}

func (f *family) recall(what any) (any, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	spec, ok := f.known[what]
	return spec, ok
}

func (f *family) hold(what, spec any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.known) >= maxKnown {
		clear(f.known)
	}
	f.known[what] = spec
}

// wait notes that an instance waits for an object, or does not any more.
func (f *family) wait(at addonv1alpha1.AddOnConfig, who reconcile.Key, waits bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !waits {
		delete(f.waiting[at], who)
		if len(f.waiting[at]) == 0 {
			delete(f.waiting, at)
		}
		return
	}
	if f.waiting[at] == nil {
		f.waiting[at] = map[reconcile.Key]bool{}
	}
	f.waiting[at][who] = true
}

// waited are the instances that wait for an object; they are forgotten.
func (f *family) waited(at addonv1alpha1.AddOnConfig) []reconcile.Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []reconcile.Key
	for who := range f.waiting[at] {
		out = append(out, who)
	}
	delete(f.waiting, at)
	return out
}

// show is "AddOnTemplate hello".
func show(at addonv1alpha1.AddOnConfig) string {
	if at.ConfigGroupResource == templates {
		return "AddOnTemplate " + at.Name
	}
	return "AddOnDeploymentConfig " + at.Namespace + "/" + at.Name
}

// slim leaves of a cluster what renderings and health read.
func slim(c *clusterv1.ManagedCluster) {
	meta := metav1.ObjectMeta{Name: c.Name, UID: c.UID, DeletionTimestamp: c.DeletionTimestamp}
	if registries, ok := c.Annotations[clusterv1.AnnotationImageRegistries]; ok {
		meta.Annotations = map[string]string{clusterv1.AnnotationImageRegistries: registries}
	}
	var conditions []metav1.Condition
	for _, have := range c.Status.Conditions {
		if have.Type == clusterv1.ConditionAvailable {
			conditions = append(conditions, metav1.Condition{Type: have.Type, Status: have.Status})
		}
	}
	*c = clusterv1.ManagedCluster{
		TypeMeta: c.TypeMeta, ObjectMeta: meta, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: c.Spec.HubAcceptsClient},
		Status: clusterv1.ManagedClusterStatus{Conditions: conditions},
	}
}
