// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// gather reads the state from the collections. When the ClusterManager is being deleted it
// also continues the removal, since only trying shows what is left.
func (c *Controller) gather(ctx context.Context, cm *operatorv1.ClusterManager) (State, error) {
	s := State{
		ClusterManager: cm,
		Now:            c.config.Clock.Now(),
		Versions:       map[string]string{},
		Held:           map[string]bool{},
		Loops:          c.config.Loops.Err(),
		Labels:         c.config.Labels,
		SyncLabels:     c.config.SyncLabels,
		Hosted:         c.config.Hosted,
		KeepAPIs:       c.config.KeepAPIs,
	}
	if cm.DeletionTimestamp != nil {
		return s, c.continueRemoval(ctx, &s)
	}
	c.removal = nil
	if err := c.gatherCertificates(&s); err != nil {
		return s, fault{fmt.Errorf("preparing the certificates: %w", err), operatorv1.ReasonHubResourceApplyFailed}
	}
	s.Serving = c.config.Serving()
	s.Unproven, _ = c.config.Authority()
	if own, ok := c.leading.own.Get(reconcile.Key{Namespace: hub.Namespace, Name: hub.Name}); ok {
		s.Deployment, s.Pod = own.generation, own.pods
		if own.available == 0 && c.config.Split == nil {
			s.Unready = "the hub's pod to be available"
		}
	}
	s.Installed = slices.Concat(c.installed, c.assembly.objects())
	s.Faulty = errors.Join(c.kept.outcome.get(), c.assembly.fault(), c.collections.tls.current().err)
	s.APIs = c.leading.apis()
	leftover := c.gatherSplit(&s)
	at := c.admissionPlace(&s)
	c.gatherHooks(&s, at)
	if err := c.gatherDefinitions(&s, at); err != nil || c.config.Split != nil || len(s.Split) > 0 || s.Hosted {
		return s, err
	}
	c.sweep(ctx, &s, leftover)
	return s, nil
}

// gatherSplit reads the Deployments of the split layout, and reports whether some of this
// project's are there.
func (c *Controller) gatherSplit(s *State) (ours bool) {
	all := map[string]readiness{}
	for _, d := range c.leading.split.List() {
		all[d.name] = d
		ours = ours || d.ours
		// Webhooks decide nothing: those of a hub that is taken over answer until ours do.
		if !d.ours && d.available > 0 && !strings.HasSuffix(d.name, "-webhook") {
			s.Split = append(s.Split, d.name)
		}
	}
	slices.Sort(s.Split)
	if c.config.Split == nil {
		return ours
	}
	features, _, _ := parseFeatures(s.ClusterManager.Spec)
	for _, wanted := range components {
		if d, found := all[wanted.deployment()]; wanted.isWanted(features) {
			s.Components = append(s.Components, Component{
				Name: wanted.deployment(), Found: found, Rolling: d.rolling || !c.assembly.has(s.ClusterManager, d),
				Unavailable: d.wanted > d.available, Generation: d.generation, isWebhook: wanted.isWebhook(),
			})
		}
	}
	return ours
}

// admissionPlace returns where admission is. In the split layout its Services are beside the
// operator until the webhooks' own Deployments answer for the first time after a switch.
func (c *Controller) admissionPlace(s *State) place {
	if s.Hosted {
		at, _ := hostedPlace(s.ClusterManager.Spec)
		return at
	}
	if c.config.Split == nil {
		return place{namespace: hub.Namespace}
	}
	live, there := c.leading.mutating.Get(reconcile.Key{Name: hooks[0].name})
	ready := !slices.ContainsFunc(s.Components, func(c Component) bool { return c.isWebhook && (!c.Found || c.Rolling || c.Unavailable) })
	if !ready && !there {
		s.Unready = "the Deployments of the webhooks to be available"
	}
	if at := live.servedIn(); !ready && at == hub.Namespace {
		return place{namespace: at}
	}
	return place{namespace: hub.ComponentNamespace}
}

// sweep removes the components of the split layout, once admission does not need them any
// more. What prevents that is reported in the state.
func (c *Controller) sweep(ctx context.Context, s *State, leftover bool) {
	if leftover {
		c.swept, s.Leftover = false, "the Deployments of the split layout to go"
	}
	if c.swept || !s.Stored || s.Serving != nil || s.Unready != "" || !c.servesAll() {
		return
	}
	left, err := teardown.HubComponents(ctx, c.config.Client)
	if err != nil {
		left = "the split layout, which cannot be removed: " + err.Error()
	}
	s.Leftover, c.swept = left, left == ""
}

// continueRemoval continues the removal. The loops are stopped first: they would recreate
// what is removed, and must not see the APIs disappear.
func (c *Controller) continueRemoval(ctx context.Context, s *State) error {
	c.config.Loops.Stop()
	if c.removal == nil {
		c.removal = teardown.NewHubRemoval(c.config.Client, c.config.KeepAPIs)
	}
	waiting, err := c.removal.Instances(ctx)
	if waiting == "" && err == nil {
		waiting, err = c.removal.Rest(ctx)
	}
	s.Remaining, s.Removed = waiting, waiting == "" && err == nil
	if err != nil {
		s.Remaining = "what cannot be removed: " + err.Error()
	}
	return err
}

// servesAll reports whether admission and conversion are all served beside this process.
func (c *Controller) servesAll() bool {
	for _, h := range hooks {
		if f, _ := c.watched(h).Get(reconcile.Key{Name: h.name}); f.servedIn() != hub.Namespace {
			return false
		}
	}
	for _, name := range definitionNames {
		if f, _ := c.leading.definitions.Get(reconcile.Key{Name: name}); crd.NeedsConversion(name) && f.convertedIn() != hub.Namespace {
			return false
		}
	}
	return true
}

// watched returns the collection that a webhook configuration is in.
func (c *Controller) watched(h hook) *watch.Collection[found] {
	if h.mutating {
		return c.leading.mutating
	}
	return c.leading.validating
}

// gatherCertificates reads the stored certificates and issues those that are missing or due
// for renewal.
func (c *Controller) gatherCertificates(s *State) error {
	var hosts []string
	if s.Hosted {
		_, hosts = hostedPlace(s.ClusterManager.Spec)
	}
	c.config.Policy.Aliases = servingAliases(hosts)
	have := certs.Set{Leaves: map[string]certs.Pair{}}
	if signer, ok := c.leading.signer.Get(inHub(operatorv1.SecretSigner)); ok {
		have.Signer, s.Versions[operatorv1.SecretSigner] = signer.pair, signer.version
	}
	if bundle, ok := c.leading.bundle.Get(inHub(operatorv1.ConfigMapCABundle)); ok {
		have.Bundle, s.Versions[operatorv1.ConfigMapCABundle] = bundle.bundle, bundle.version
	}
	features, _, _ := parseFeatures(s.ClusterManager.Spec)
	names := servingNames(features)
	for dns, name := range servingSecrets() {
		if leaf, ok := c.collections.secrets[name].Get(inHub(name)); ok {
			s.Versions[name] = leaf.version
			if slices.Contains(names, dns) {
				have.Leaves[dns] = leaf.pair
			}
		}
	}
	// Certificates issued in the last pass are kept until the watch shows them: otherwise
	// every pass would issue new ones.
	if c.made != nil && !reflect.DeepEqual(have, *c.made) {
		if _, changed, err := c.config.Policy.Ensure(*c.made, names, s.Now); err == nil && len(changed) == 0 && !c.replaced(have, names) {
			have = *c.made
		}
	}
	set, changed, err := c.config.Policy.Ensure(have, names, s.Now)
	if err != nil {
		return err
	}
	s.Certs, s.CertsNext = set, c.config.Policy.Next(set)
	s.Stored = c.stored(set, names, s.Held)
	c.made = &set
	if len(changed) > 0 {
		c.log.Info("Certificates are renewed", "parts", []string(changed))
	}
	return nil
}

// replaced reports whether another writer has stored a valid authority in the meantime; that
// one is then used.
func (c *Controller) replaced(have certs.Set, names []string) bool {
	_, changed, err := c.config.Policy.Ensure(have, names, c.config.Clock.Now())
	return err == nil && len(changed) == 0
}

// stored reports whether the Secrets and the ConfigMap hold exactly this set, and records in
// held, by name, which of them do.
func (c *Controller) stored(set certs.Set, names []string, held map[string]bool) bool {
	signer, _ := c.leading.signer.Get(inHub(operatorv1.SecretSigner))
	held[operatorv1.SecretSigner] = reflect.DeepEqual(signer.pair, set.Signer)
	bundle, _ := c.leading.bundle.Get(inHub(operatorv1.ConfigMapCABundle))
	held[operatorv1.ConfigMapCABundle] = string(bundle.bundle) == string(set.Bundle)
	all := held[operatorv1.SecretSigner] && held[operatorv1.ConfigMapCABundle]
	secrets := servingSecrets()
	for _, dns := range names {
		name := secrets[dns]
		leaf, _ := c.collections.secrets[name].Get(inHub(name))
		held[name] = reflect.DeepEqual(leaf.pair, set.Leaves[dns])
		all = all && held[name]
	}
	return all
}

func inHub(name string) reconcile.Key {
	return reconcile.Key{Namespace: hub.ComponentNamespace, Name: name}
}

// gatherHooks prepares the webhook configurations. Those that are up to date are not applied.
func (c *Controller) gatherHooks(s *State, at place) {
	for _, h := range hooks {
		f := c.readFound(c.watched(h), h.name)
		hook := Hook{Name: h.name, Version: f.version, Wanted: h.object(at, s.Certs.Bundle)}
		if f.hasIntent(manager.Stamp(hook.Wanted)) && f.matches(wireForm(hook.Wanted)) {
			hook.Wanted = nil
		}
		s.Hooks = append(s.Hooks, hook)
	}
}

// readFound reads what is cached of an object, and marks it shared if it changed since this
// process first saw it.
func (c *Controller) readFound(list *watch.Collection[found], name string) found {
	f, ok := list.Get(reconcile.Key{Name: name})
	if !ok {
		c.sight.Forget(name)
		return f
	}
	f.shared = f.shared || !c.sight.Unchanged(name, f.version)
	return f
}

// gatherDefinitions prepares the CustomResourceDefinitions. Decoding an embedded definition
// costs memory, so the hash of each is remembered.
func (c *Controller) gatherDefinitions(s *State, at place) error {
	if client := fmt.Sprint(at, string(s.Certs.Bundle)); c.converter != client {
		c.converter = client
		clear(c.intents)
	}
	features, _, _ := parseFeatures(s.ClusterManager.Spec)
	for _, name := range definitionsFor(features, s.Permissions) {
		f := c.readFound(c.leading.definitions, name)
		d := Definition{Name: name, Version: f.version, Established: f.established}
		if f.release != "" && isNewer(f.release, c.config.Version) {
			d.Newer = f.release
		} else if intent, ok := c.intents[name]; !ok || !f.hasIntent(intent) || !f.matches(c.conversions[name]) {
			wanted, err := c.definition(name, at, s)
			if err != nil {
				return fault{fmt.Errorf("preparing definition %s: %w", name, err), operatorv1.ReasonCRDApplyFailed}
			}
			c.intents[name] = manager.Stamp(wanted)
			conversion, _, _ := unstructured.NestedMap(wanted.Object, "spec", "conversion")
			c.conversions[name] = map[string]any{"spec": map[string]any{"conversion": conversion}}
			if !f.hasIntent(c.intents[name]) || !f.matches(c.conversions[name]) {
				d.Wanted = wanted
			}
		}
		s.Definitions = append(s.Definitions, d)
	}
	return nil
}

// definition returns the CustomResourceDefinition to apply.
func (c *Controller) definition(name string, at place, s *State) (*unstructured.Unstructured, error) {
	u, err := crd.Any(name)
	if err != nil {
		return nil, err
	}
	if crd.NeedsConversion(name) {
		u = crd.WithConversion(u, crd.Conversion{
			Namespace: at.namespace, Name: operatorv1.ServiceAddOnWebhook, Path: webhook.PathConvert, Port: hub.WebhookPort, CABundle: s.Certs.Bundle,
			URL: at.url(operatorv1.ServiceAddOnWebhook, webhook.PathConvert),
		})
	}
	u.SetLabels(inventory(s.ClusterManager.Name))
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[operatorv1.AnnotationVersion] = strings.TrimPrefix(c.config.Version, "v")
	if c.config.KeepAPIs {
		annotations[operatorv1.AnnotationRemovalPolicy] = operatorv1.RemovalPolicyKeep
	}
	u.SetAnnotations(annotations)
	return u, nil
}

// isNewer reports whether release a is newer than release b. A string that is no release, and a
// development build, count as 0.0.0.
func isNewer(a, b string) bool {
	return parseRelease(b).LessThan(parseRelease(a))
}

func parseRelease(s string) *version.Version {
	v, err := version.ParseSemantic(strings.TrimPrefix(s, "v"))
	if err != nil || strings.Contains(s, "-dev") {
		return version.MajorMinor(0, 0)
	}
	return v
}
