// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"cmp"
	"fmt"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// State is everything that a decision needs.
type State struct {
	// AddOn is the instance.
	AddOn *addonv1alpha1.ManagedClusterAddOn
	// Cluster is its ManagedCluster; nil if there is none.
	Cluster *clusterv1.ManagedCluster
	// Hosting is the cluster that the agent runs on; nil if it runs on the managed cluster.
	Hosting *Hosting
	// Options are those of the add-on.
	Options addonkit.Options
	// Manifests is what it renders; ignored if RenderError is set.
	Manifests   []addonkit.Manifest
	RenderError error
	// Configs are the manifest options, those of health and of the author, combined by
	// MergeConfigs.
	Configs []workv1.ManifestConfigOption
	// Mark is the value of the annotation with the hashes of configurations; empty for
	// none.
	Mark string
	// Works are all ManifestWorks of the instance, in any namespace.
	Works []*workv1.ManifestWork
	// Now is the time of the decision.
	Now time.Time
}

// Hosting is the cluster that the agent of an add-on runs on instead.
type Hosting struct {
	// Name is the one that the instance gives.
	Name string
	// Cluster is the ManagedCluster with this name; nil if there is none.
	Cluster *clusterv1.ManagedCluster
}

// valid reports whether there is a hosting cluster to run on.
func (s State) valid() bool {
	return s.Hosting != nil && s.Hosting.Cluster != nil && s.Hosting.Cluster.DeletionTimestamp == nil
}

// open reports whether the hosting cluster accepts anything new: one that is not accepted
// keeps what it has, because it may be accepted again.
func (s State) open() bool { return s.valid() && s.Hosting.Cluster.Spec.HubAcceptsClient }

// ready reports whether the gates before deployment are open.
func (s State) ready() bool {
	return apimeta.FindStatusCondition(s.AddOn.Status.Conditions, addonv1alpha1.ConditionRegistrationApplied) != nil &&
		(!s.Options.WaitConfigured || apimeta.IsStatusConditionTrue(s.AddOn.Status.Conditions, addonv1alpha1.ConditionConfigured))
}

// deadline returns when a deletion stops waiting; false means never. The user's annotation
// overrides the add-on's option; one that is not a duration is ignored.
func (s State) deadline() (time.Time, bool) {
	wait := cmp.Or(s.Options.HookDeadline, addonkit.DefaultHookDeadline)
	if d, err := time.ParseDuration(s.AddOn.Annotations[addonv1alpha1.AnnotationHookDeadline]); err == nil {
		wait = d
	}
	if wait < 0 || s.AddOn.DeletionTimestamp == nil {
		return time.Time{}, false
	}
	return s.AddOn.DeletionTimestamp.Add(wait), true
}

// parts are manifests by where and when they are applied.
type parts struct {
	managed, hosting, managedHooks, hostingHooks []addonkit.Manifest
}

// sortOut assigns manifests to where they are applied. Without a hosting cluster all are
// for the managed one, whatever they say.
func (s State) sortOut() (parts, error) {
	var p parts
	if s.RenderError != nil {
		return p, s.RenderError
	}
	for _, m := range s.Manifests {
		if m.Bytes() > maxWork {
			return parts{}, fmt.Errorf("%s: the manifest has %d bytes, more than the %d that a ManifestWork may hold; make it smaller", m.ID, m.Bytes(), maxWork)
		}
		onHosting := false
		if s.Hosting != nil {
			switch where, _ := m.Marked(addonv1alpha1.AnnotationHostedManifestLocation); where {
			case "", addonv1alpha1.HostedManifestLocationManaged:
			case addonv1alpha1.HostedManifestLocationHosting:
				onHosting = true
			case addonv1alpha1.HostedManifestLocationNone:
				continue
			default:
				return parts{}, fmt.Errorf("%s: annotation %s: %q is not a location; use managed, hosting or none",
					m.ID, addonv1alpha1.AnnotationHostedManifestLocation, where)
			}
		}
		list := &p.managed
		switch {
		case m.Hook() && onHosting:
			list = &p.hostingHooks
		case m.Hook():
			list = &p.managedHooks
		case onHosting:
			list = &p.hosting
		}
		*list = append(*list, m)
	}
	return p, nil
}

// Inspected returns the works and manifests that show the health: in hosted mode those on
// the hosting cluster. An error is why the manifests are not known; the health then stays
// as it is.
func (s State) Inspected() ([]addonkit.Manifest, []*workv1.ManifestWork, error) {
	p, err := s.sortOut()
	if err != nil {
		return nil, nil, err
	}
	if s.Hosting != nil {
		return p.hosting, s.worksOf(s.hostingPlace()), nil
	}
	return p.managed, s.worksOf(s.managedPlace()), nil
}

// trouble returns why a cluster does not do its work, or "" if nothing is known.
func trouble(c *clusterv1.ManagedCluster) string {
	if !c.Spec.HubAcceptsClient {
		return fmt.Sprintf("cluster %s is not accepted: an administrator has to accept it", c.Name)
	}
	if apimeta.IsStatusConditionPresentAndEqual(c.Status.Conditions, clusterv1.ConditionAvailable, metav1.ConditionUnknown) {
		return fmt.Sprintf("cluster %s is not reachable", c.Name)
	}
	return ""
}
