// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

var configMapsResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// Profile is what is cached of a ConfigMap that limits connections.
type Profile struct {
	Namespace, Version string
	// Owner is the Klusterlet of the label.
	Owner string
	Data  map[string]string
}

// newProfiles watches the ConfigMap beside an operator, and its copies.
func (c *Controller) newProfiles() *watch.Collection[Profile] {
	profiles := watch.New(watch.Options[Profile]{
		Client: c.config.Client, Resource: configMapsResource, FieldSelector: "metadata.name=" + observe.ConfigMapProfile, Log: c.config.Log,
		Keep: func(u *unstructured.Unstructured) (Profile, bool) {
			data, _, _ := unstructured.NestedStringMap(u.Object, "data")
			return Profile{
				Namespace: u.GetNamespace(), Version: u.GetResourceVersion(), Owner: u.GetLabels()[operatorv1.LabelCreatedByKlusterlet], Data: data,
			}, true
		},
	})
	profiles.OnChange(func(reconcile.Key) { c.wakeAll() })
	return profiles
}

func (c *Controller) gatherProfile(v *view, s *State) {
	if v.profiles == nil {
		return
	}
	for _, p := range v.profiles.List() {
		if p.Namespace == c.config.Namespace {
			s.Profile = &p
		} else {
			s.ProfileCopies[p.Namespace] = p
		}
	}
}

// limits returns the flags that limit the connections of the agent, and why they cannot be read;
// none without a profile.
func (s State) limits() (flags []string, problem string) {
	if s.Profile == nil {
		return nil, ""
	}
	read, _, err := observe.ReadProfile(s.Profile.Data)
	if err != nil {
		return nil, fmt.Sprintf("ConfigMap %s/%s: %v", s.Profile.Namespace, observe.ConfigMapProfile, err)
	}
	return read.Args(), ""
}

// profiles copies the profile to where add-ons run, and removes the copies that are not wanted any
// more. One that somebody else made stays.
func (s State) profiles() []reconcile.Write {
	wanted := map[string]bool{}
	for name := range s.ProfileCopies {
		wanted[name] = false
	}
	for name, n := range s.Namespaces {
		if (n.AddOns || name == operatorv1.NamespaceAgentAddOn) && !n.Leaving {
			wanted[name] = s.Profile != nil
		}
	}
	var out []reconcile.Write
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		live, found := s.ProfileCopies[name]
		switch {
		case found && live.Owner == "":
		case wanted[name]:
			owner := live.Owner
			if !slices.Contains(s.Neighbors, owner) {
				owner = s.Klusterlet.Name
			}
			out = append(out, reconcile.Apply{Object: s.Profile.copyFor(name, owner), LiveVersion: live.Version})
		case found:
			out = append(out, reconcile.Remove{Target: reconcile.Target{
				Resource: configMapsResource, Namespace: name, Name: observe.ConfigMapProfile, Version: live.Version,
			}})
		}
	}
	return out
}

// copyFor returns a copy, labelled as a Klusterlet's.
func (p Profile) copyFor(namespace, owner string) *unstructured.Unstructured {
	data := map[string]any{}
	for key, value := range p.Data {
		data[key] = value
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
	u.SetNamespace(namespace)
	u.SetName(observe.ConfigMapProfile)
	u.SetLabels(map[string]string{operatorv1.LabelCreatedByKlusterlet: owner})
	return u
}
