// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"crypto/sha256"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/certs"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// gather reads the state from the collections. When the object is being deleted
// it also carries the removal on, since what is left is only known by trying.
func (c *Controller) gather(ctx context.Context, cm *operatorv1.ClusterManager) (State, error) {
	s := State{ClusterManager: cm, Now: c.config.Clock.Now(), Versions: map[string]string{}, Loops: c.config.Loops.Err()}
	if cm.DeletionTimestamp != nil {
		return s, c.carryOn(ctx, &s)
	}
	if err := c.gatherCertificates(&s); err != nil {
		return s, err
	}
	c.gatherHooks(&s)
	s.Serving = c.config.Serving()
	if own, ok := c.leading.own.Get(reconcile.Key{Namespace: hub.Namespace, Name: hub.Name}); ok && own.available == 0 {
		s.Unready = "the hub's pod to be available"
	}
	for _, d := range c.leading.split.List() {
		if d.available > 0 {
			s.Split = append(s.Split, d.name)
		}
	}
	slices.Sort(s.Split)
	return s, c.gatherDefinitions(&s)
}

// carryOn goes on with the removal. The loops run while objects are left that
// they have to let go; they must not see the APIs go.
func (c *Controller) carryOn(ctx context.Context, s *State) error {
	o := teardown.HubOptions{ClusterManager: s.ClusterManager.Name}
	waiting, err := teardown.HubInstances(ctx, c.config.Client, o, true)
	s.Instances = waiting != "" || err != nil
	if !s.Instances {
		c.config.Loops.Stop()
		waiting, err = teardown.HubRest(ctx, c.config.Client)
	}
	s.Remaining, s.Removed = waiting, waiting == "" && err == nil
	if err != nil {
		s.Remaining = "what cannot be removed: " + err.Error()
	}
	return err
}

// gatherCertificates reads what is stored and makes what is missing or worn.
func (c *Controller) gatherCertificates(s *State) error {
	have := certs.Set{Leaves: map[string]certs.Pair{}}
	if signer, ok := c.leading.signer.Get(inHub(operatorv1.SecretSigner)); ok {
		have.Signer, s.Versions[operatorv1.SecretSigner] = signer.pair, signer.version
	}
	if bundle, ok := c.leading.bundle.Get(inHub(operatorv1.ConfigMapCABundle)); ok {
		have.Bundle, s.Versions[operatorv1.ConfigMapCABundle] = bundle.bundle, bundle.version
	}
	for dns, name := range servingSecrets() {
		if leaf, ok := c.collections.secrets[name].Get(inHub(name)); ok {
			have.Leaves[dns], s.Versions[name] = leaf.pair, leaf.version
		}
	}
	// What was made in the last pass is kept until the watch shows it: making
	// it again would never end.
	if c.made != nil && !reflect.DeepEqual(have, *c.made) {
		if _, changed, err := c.config.Policy.Ensure(*c.made, ServingNames(), s.Now); err == nil && len(changed) == 0 && !c.replaced(have) {
			have = *c.made
		}
	}
	set, changed, err := c.config.Policy.Ensure(have, ServingNames(), s.Now)
	if err != nil {
		return err
	}
	s.Certs, s.CertsNext = set, c.config.Policy.Next(set)
	s.Stored = len(changed) == 0 && c.stored(set)
	c.made = &set
	if len(changed) > 0 {
		c.log.Info("Certificates are renewed", "parts", []string(changed))
	}
	return nil
}

// replaced tells whether somebody else stored another good authority meanwhile:
// then that one counts.
func (c *Controller) replaced(have certs.Set) bool {
	_, changed, err := c.config.Policy.Ensure(have, ServingNames(), c.config.Clock.Now())
	return err == nil && len(changed) == 0
}

// stored tells whether the Secrets hold exactly this set.
func (c *Controller) stored(set certs.Set) bool {
	signer, ok := c.leading.signer.Get(inHub(operatorv1.SecretSigner))
	bundle, also := c.leading.bundle.Get(inHub(operatorv1.ConfigMapCABundle))
	if !ok || !also || !reflect.DeepEqual(signer.pair, set.Signer) || string(bundle.bundle) != string(set.Bundle) {
		return false
	}
	for dns, name := range servingSecrets() {
		leaf, ok := c.collections.secrets[name].Get(inHub(name))
		if !ok || !reflect.DeepEqual(leaf.pair, set.Leaves[dns]) {
			return false
		}
	}
	return true
}

func inHub(name string) reconcile.Key {
	return reconcile.Key{Namespace: hub.ComponentNamespace, Name: name}
}

func (c *Controller) gatherHooks(s *State) {
	for _, h := range hooks {
		list := c.leading.validating
		if h.mutating {
			list = c.leading.mutating
		}
		if version, ok := list.Get(reconcile.Key{Name: h.name}); ok {
			s.Versions[h.name] = version
		}
	}
}

// known is what is known to be applied of a definition: this version of it with
// this intent. Reading definitions from the program costs memory, so those that
// are known are not read.
type known struct {
	version string
	intent  [sha256.Size]byte
}

func (c *Controller) gatherDefinitions(s *State) error {
	intent := sha256.Sum256(append([]byte(c.config.Version), s.Certs.Bundle...))
	for _, name := range definitionNames {
		found, _ := c.leading.definitions.Get(reconcile.Key{Name: name})
		d := Definition{Name: name, Version: found.version, Established: found.established}
		if found.release != "" && newer(found.release, c.config.Version) {
			d.Newer = found.release
		} else if found.version == "" || c.known[name] != (known{found.version, intent}) {
			wanted, err := c.definition(name, s)
			if err != nil {
				return err
			}
			d.Wanted = wanted
		}
		s.Definitions = append(s.Definitions, d)
	}
	return nil
}

// remember notes, after a pass without errors, what need not be read again. A
// definition that the pass changed has another version by then, and is compared
// once more.
func (c *Controller) remember(s State) {
	intent := sha256.Sum256(append([]byte(c.config.Version), s.Certs.Bundle...))
	for _, d := range s.Definitions {
		if d.Wanted != nil && d.Version != "" {
			c.known[d.Name] = known{d.Version, intent}
		}
	}
}

// definition is the object to apply.
func (c *Controller) definition(name string, s *State) (*unstructured.Unstructured, error) {
	u, err := crd.Get(name)
	if err != nil {
		return nil, err
	}
	if crd.NeedsConversion(name) {
		u = crd.WithConversion(u, crd.Conversion{
			Namespace: hub.Namespace, Name: operatorv1.ServiceAddOnWebhook, Path: webhook.PathConvert, Port: hub.WebhookPort, CABundle: s.Certs.Bundle,
		})
	}
	u.SetLabels(inventory(s.ClusterManager.Name))
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[operatorv1.AnnotationVersion] = strings.TrimPrefix(c.config.Version, "v")
	u.SetAnnotations(annotations)
	return u, nil
}

// newer tells whether release a is newer than release b; what is no release is
// 0.0.0, as builds of developers are (operator.md 1.3).
func newer(a, b string) bool {
	return parseRelease(b).LessThan(parseRelease(a))
}

func parseRelease(s string) *version.Version {
	v, err := version.ParseSemantic(strings.TrimPrefix(s, "v"))
	if err != nil || strings.Contains(s, "-dev") {
		return version.MajorMinor(0, 0)
	}
	return v
}
