// SPDX-License-Identifier: Apache-2.0

package templated

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	addoninstance "github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// maxKnown is how many decoded contents are cached, including outdated ones. When there are
// more, all are dropped, and decoded again when needed.
const maxKnown = 2048

// contents returns the current content of a configuration; false if it does not exist.
type contents interface {
	Get(addonv1alpha1.AddOnConfig) (config.Content, bool)
}

// giver reports whether users assign a configuration to an add-on on a cluster; known is
// false if there is no add-on with this name.
type giver interface {
	Gives(ctx context.Context, cluster, addOn string, c addonv1alpha1.AddOnConfig) (given, known bool, err error)
}

// family knows which instances are defined by templates, and their contents.
type family struct {
	client   dynamic.Interface
	clock    clock.PassiveClock
	contents contents
	giver    giver

	mu sync.Mutex
	// known holds contents by key, and the last one of each object by its AddOnConfig.
	known map[any]any
	// listing holds the add-ons that are defined by templates.
	listing map[string]bool
	// waiting holds the instances that wait for an object to get other content.
	waiting map[addonv1alpha1.AddOnConfig]map[reconcile.Key]bool
}

func newFamily(client dynamic.Interface, clk clock.PassiveClock, c contents, g giver) *family {
	return &family{
		client: client, clock: clk, contents: c, giver: g, known: map[any]any{},
		listing: map[string]bool{}, waiting: map[addonv1alpha1.AddOnConfig]map[reconcile.Key]bool{},
	}
}

// setListed records whether an add-on is defined by templates; it returns true if that
// changed.
func (f *family) setListed(addOn string, listed bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.listing[addOn]
	f.listing[addOn] = listed
	if !listed {
		delete(f.listing, addOn)
	}
	return before != listed
}

// usesTemplates reports whether an add-on is defined by templates, with or without a default.
func usesTemplates(addOn *addonv1alpha1.ClusterManagementAddOn) bool {
	return addOn != nil && slices.ContainsFunc(addOn.Spec.SupportedConfigs, func(c addonv1alpha1.ConfigMeta) bool {
		return c.ConfigGroupResource == templates
	})
}

// serves reports whether an instance is defined by a template.
func (f *family) serves(a *addonv1alpha1.ManagedClusterAddOn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listing[a.Name] || slices.Contains(a.Status.SupportedConfigs, templates)
}

// addOnOf returns the add-on of an instance with its desired contents; false if these are not
// known, or no longer exist.
func (f *family) addOnOf(a *addonv1alpha1.ManagedClusterAddOn) (addonkit.AddOn, bool) {
	if !f.serves(a) {
		return nil, false
	}
	n := &instance{name: a.Name}
	last := f.lastApplied(a)
	for _, ref := range a.Status.ConfigReferences {
		spec, err := f.read(a, ref)
		switch {
		case err != nil && last != nil:
			return f.withCredentials(last), true
		case err != nil:
			return newBroken(a.Name, err), true
		}
		if _, waits := spec.(later); waits {
			return nil, false
		}
		if ref.DesiredConfig != nil {
			n.addContent(config.Referent(ref), ref.Resource, ref.DesiredConfig.SpecHash, spec)
		}
	}
	switch {
	case n.template == nil && a.DeletionTimestamp != nil:
		return newBroken(a.Name, fmt.Errorf("ManagedClusterAddOn %s/%s: status.configReferences: names no AddOnTemplate", a.Namespace, a.Name)), true
	case n.template == nil:
		return nil, false
	}
	n.last = last
	return f.withCredentials(n), true
}

// addContent adds a content to an instance; of several templates the first counts.
func (n *instance) addContent(at addonv1alpha1.ConfigReferent, resource, hash string, spec any) {
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

// withCredentials returns the instance, as registered if its template requests credentials.
func (f *family) withCredentials(n *instance) addonkit.AddOn {
	if len(n.template.Spec.Registration) > 0 {
		return registered{n, f.client, f.clock}
	}
	return n
}

// lastApplied returns an instance that is being deleted with the contents that were last
// applied; nil if not all of them are still known.
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
		n.addContent(applied.ConfigReferent, ref.Resource, applied.SpecHash, spec)
	}
	if n.template == nil {
		return nil
	}
	return n
}

// later stands for content that its object does not have yet or no longer has, and for
// configurations that are not assigned to the instance: what runs is left as it is.
type later struct{}

// read returns the spec that a reference names; nil for one of another kind. An instance that
// is being deleted gets any existing content, so that its hooks run.
func (f *family) read(a *addonv1alpha1.ManagedClusterAddOn, ref addonv1alpha1.ConfigReference) (any, error) {
	if !slices.Contains(supported, ref.ConfigGroupResource) {
		return nil, nil
	}
	at := addonv1alpha1.AddOnConfig{ConfigGroupResource: ref.ConfigGroupResource, ConfigReferent: config.Referent(ref)}
	hash, last := "", a.DeletionTimestamp != nil
	if ref.DesiredConfig != nil {
		hash = ref.DesiredConfig.SpecHash
	}
	switch given, err := f.given(a, at); {
	case err != nil:
		return nil, err
	case !given && last:
		return nil, fmt.Errorf("%s: is not assigned to the instance", show(at))
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
	who := reconcile.KeyOf(a)
	f.setWaiting(at, who, true) // before reading: any later change then requeues the instance
	content, there := f.contents.Get(at)
	switch {
	case !there:
		return nil, fmt.Errorf("%s: no longer exists, and what runs is left as it is; create it again, or name another one", show(at))
	case content.Hash != hash:
		return later{}, nil
	}
	f.setWaiting(at, who, false)
	return f.decode(at, content)
}

// given reports whether users assigned a configuration to an instance. The status does not
// count, because the agent of the cluster may write it, and could otherwise read the settings
// of others by naming them. An instance that is being deleted and whose add-on is already
// gone has nothing else, so its templates and hooks are taken from the status.
func (f *family) given(a *addonv1alpha1.ManagedClusterAddOn, at addonv1alpha1.AddOnConfig) (bool, error) {
	if slices.Contains(a.Spec.Configs, at) {
		return true, nil
	}
	f.setWaiting(ofAddOn(a.Name), reconcile.KeyOf(a), true) // before reading
	given, known, err := f.giver.Gives(context.Background(), a.Namespace, a.Name, at)
	if err != nil {
		return false, err
	}
	given = given || (a.DeletionTimestamp != nil && (!known || at.ConfigGroupResource == templates))
	if given {
		f.setWaiting(ofAddOn(a.Name), reconcile.KeyOf(a), false)
	}
	return given, nil
}

// ofAddOn returns the key in waiting that stands for an add-on itself.
func ofAddOn(name string) addonv1alpha1.AddOnConfig {
	return addonv1alpha1.AddOnConfig{ConfigReferent: addonv1alpha1.ConfigReferent{Name: name}}
}

// lastOf returns the content of an object, or its last content if it was deleted.
func (f *family) lastOf(at addonv1alpha1.AddOnConfig) (any, error) {
	if content, there := f.contents.Get(at); there {
		return f.decode(at, content)
	}
	if spec, held := f.recall(at); held {
		return spec, nil
	}
	return nil, fmt.Errorf("%s: does not exist", show(at))
}

// key identifies a content. It includes the object, so that knowing the hash of another
// object's content gives no access to it.
type key struct {
	at   addonv1alpha1.AddOnConfig
	hash string
}

// decode decodes a content and caches it.
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

// setWaiting records whether an instance waits for an object.
func (f *family) setWaiting(at addonv1alpha1.AddOnConfig, who reconcile.Key, waits bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	addoninstance.SetMember(f.waiting, at, who, waits)
}

// takeWaiting returns the instances that wait for an object, and drops them.
func (f *family) takeWaiting(at addonv1alpha1.AddOnConfig) []reconcile.Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer delete(f.waiting, at)
	return slices.Collect(maps.Keys(f.waiting[at]))
}

// show returns kind and name of a configuration, for example "AddOnTemplate hello".
func show(at addonv1alpha1.AddOnConfig) string {
	if at.ConfigGroupResource == templates {
		return "AddOnTemplate " + at.Name
	}
	return "AddOnDeploymentConfig " + at.Namespace + "/" + at.Name
}

// slim reduces a cluster to what rendering and health read.
func slim(c *clusterv1.ManagedCluster) {
	meta := metav1.ObjectMeta{Name: c.Name, UID: c.UID, DeletionTimestamp: c.DeletionTimestamp}
	if registries, ok := c.Annotations[clusterv1.AnnotationImageRegistries]; ok {
		meta.Annotations = map[string]string{clusterv1.AnnotationImageRegistries: registries}
	}
	var conditions []metav1.Condition
	if have := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ConditionAvailable); have != nil {
		conditions = []metav1.Condition{{Type: have.Type, Status: have.Status}}
	}
	*c = clusterv1.ManagedCluster{
		TypeMeta: c.TypeMeta, ObjectMeta: meta, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: c.Spec.HubAcceptsClient},
		Status: clusterv1.ManagedClusterStatus{Conditions: conditions},
	}
}
