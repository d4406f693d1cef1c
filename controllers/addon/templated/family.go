// SPDX-License-Identifier: Apache-2.0

package templated

import (
	"context"
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

// giver tells whether people give a configuration to an add-on on a cluster; known is
// false when there is no add-on of the name.
type giver interface {
	Gives(ctx context.Context, cluster, addOn string, c addonv1alpha1.AddOnConfig) (given, known bool, err error)
}

// family knows which instances are made of templates, and of what.
type family struct {
	client   dynamic.Interface
	clock    clock.PassiveClock
	contents contents
	giver    giver

	mu sync.Mutex
	// known are contents by key, and the last one of each object by its AddOnConfig.
	known map[any]any
	// listing are the add-ons that are made of templates.
	listing map[string]bool
	// waiting are the instances that are to have what an object does not say now.
	waiting map[addonv1alpha1.AddOnConfig]map[reconcile.Key]bool
}

func newFamily(client dynamic.Interface, clk clock.PassiveClock, c contents, g giver) *family {
	return &family{
		client: client, clock: clk, contents: c, giver: g, known: map[any]any{},
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
	last := f.lastApplied(a)
	for _, ref := range a.Status.ConfigReferences {
		spec, err := f.read(a, ref)
		switch {
		case err != nil && last != nil:
			return f.whole(last), true
		case err != nil:
			return &broken{instance{name: a.Name}, err}, true
		}
		if _, waits := spec.(later); waits {
			return nil, false
		}
		if ref.DesiredConfig != nil {
			n.take(config.Referent(ref), ref.Resource, ref.DesiredConfig.SpecHash, spec)
		}
	}
	switch {
	case n.template == nil && a.DeletionTimestamp != nil:
		return &broken{instance{name: a.Name}, fmt.Errorf("ManagedClusterAddOn %s/%s: status.configReferences: names no AddOnTemplate", a.Namespace, a.Name)}, true
	case n.template == nil:
		return nil, false
	}
	n.last = last
	return f.whole(n), true
}

// take adds a content to what an instance is made of; of templates the first counts.
func (n *instance) take(at addonv1alpha1.ConfigReferent, resource, hash string, spec any) {
	if spec == nil {
		return
	}
	n.contents = append(n.contents, resource, at.Namespace, at.Name, hash)
	switch spec := spec.(type) {
	case *addonv1alpha1.AddOnTemplateSpec:
		if n.template == nil {
			n.template = &addonv1alpha1.AddOnTemplate{ObjectMeta: named(at), Spec: *spec}
		}
	case *addonv1alpha1.AddOnDeploymentConfigSpec:
		n.configs = append(n.configs, &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: named(at), Spec: *spec})
	}
}

// whole is an instance with credentials where its template, or that of before, has any.
func (f *family) whole(n *instance) addonkit.AddOn {
	if len(n.template.Spec.Registration) > 0 {
		return registered{n, f.client, f.clock}
	}
	return n
}

// lastApplied is an instance on its way out by the contents that it had applied last, as
// far as they are known still; nil where not all are.
func (f *family) lastApplied(a *addonv1alpha1.ManagedClusterAddOn) *instance {
	if a.DeletionTimestamp == nil {
		return nil
	}
	n := &instance{name: a.Name}
	for _, ref := range a.Status.ConfigReferences {
		applied := ref.LastAppliedConfig
		if applied == nil || !slices.Contains(supported, ref.ConfigGroupResource) {
			continue
		}
		at := addonv1alpha1.AddOnConfig{ConfigGroupResource: ref.ConfigGroupResource, ConfigReferent: applied.ConfigReferent}
		spec, held := f.recall(key{at, applied.SpecHash})
		if given, err := f.given(a, at); !held || err != nil || !given {
			return nil
		}
		n.take(applied.ConfigReferent, ref.Resource, applied.SpecHash, spec)
	}
	if n.template == nil {
		return nil
	}
	return n
}

// later stands for content that its object does not have yet, or has no more, and for
// what nobody gave to the instance: what runs stays.
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
	who := reconcile.Key{Namespace: a.Namespace, Name: a.Name}
	switch given, err := f.given(a, at); {
	case err != nil:
		return nil, err
	case !given && last:
		return nil, fmt.Errorf("%s: is not given to the instance by anybody", show(at))
	case !given:
		return later{}, nil
	}
	if spec, ok := f.recall(key{at, hash}); ok && hash != "" {
		return spec, nil
	}
	if hash == "" && !last {
		return nil, fmt.Errorf("%s: does not exist; create it, or name another one", show(at))
	}
	if last {
		return f.lastOf(at)
	}
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

// given tells whether an instance is to have a configuration by what people wrote. Its
// status does not tell, because the agent of the cluster may write it, and would read
// the settings of others by naming them. An instance on its way out whose add-on went
// first has nothing else, so that its templates, and hooks, are taken from there.
func (f *family) given(a *addonv1alpha1.ManagedClusterAddOn, at addonv1alpha1.AddOnConfig) (bool, error) {
	if slices.Contains(a.Spec.Configs, at) {
		return true, nil
	}
	f.wait(ofAddOn(a.Name), reconcile.Key{Namespace: a.Namespace, Name: a.Name}, true) // before the look
	given, known, err := f.giver.Gives(context.Background(), a.Namespace, a.Name, at)
	if err != nil {
		return false, err
	}
	given = given || (a.DeletionTimestamp != nil && (!known || at.ConfigGroupResource == templates))
	if given {
		f.wait(ofAddOn(a.Name), reconcile.Key{Namespace: a.Namespace, Name: a.Name}, false)
	}
	return given, nil
}

// ofAddOn stands for what is written of an add-on among what instances wait for.
func ofAddOn(name string) addonv1alpha1.AddOnConfig {
	return addonv1alpha1.AddOnConfig{ConfigReferent: addonv1alpha1.ConfigReferent{Name: name}}
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

// key names a content: of the object too, so that who knows the hash of what another
// one says gets nothing by it.
type key struct {
	at   addonv1alpha1.AddOnConfig
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
	f.hold(key{at, c.Hash}, spec)
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
