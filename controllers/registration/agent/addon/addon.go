// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// resource is the resource of ManagedClusterAddOns.
var resource = addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")

// AddOns are the ManagedClusterAddOns of one cluster. One that cannot be decoded is nil: it
// exists, but nothing more is known.
type AddOns = watch.Collection[*addonv1alpha1.ManagedClusterAddOn]

// NewAddOns makes the collection of a cluster's add-ons on its hub; its owner runs it.
func NewAddOns(hub dynamic.Interface, cluster string, log logr.Logger) *AddOns {
	return watch.New(watch.Options[*addonv1alpha1.ManagedClusterAddOn]{
		Client: hub, Resource: resource, Namespace: cluster, Log: log,
		Keep: func(u *unstructured.Unstructured) (*addonv1alpha1.ManagedClusterAddOn, bool) {
			a, err := decode(u)
			if err != nil {
				log.Info("ManagedClusterAddOn cannot be decoded and is ignored", "addon", u.GetName(), "error", err.Error())
			}
			return a, true
		},
	})
}

// maxAddOn bounds what is kept of one add-on, in bytes of JSON.
const maxAddOn = 64 << 10

// decode reduces an add-on to what the agent reads. A patch contains only what was changed, so
// what is not kept is not lost. On an error the add-on is nil.
func decode(u *unstructured.Unstructured) (*addonv1alpha1.ManagedClusterAddOn, error) {
	u.SetManagedFields(nil)
	a, err := typed.FromUnstructured[addonv1alpha1.ManagedClusterAddOn](u)
	if err != nil {
		return nil, err
	}
	host, hosted := a.Annotations[addonv1alpha1.AnnotationHostingClusterName]
	if a.Annotations = nil; hosted {
		a.Annotations = map[string]string{addonv1alpha1.AnnotationHostingClusterName: host}
	}
	a.Labels, a.OwnerReferences, a.Spec.Configs = nil, nil, nil
	s := &a.Status
	s.RelatedObjects, s.SupportedConfigs, s.ConfigReferences = nil, nil, nil
	s.AddOnMeta, s.AddOnConfiguration = addonv1alpha1.AddOnMeta{}, addonv1alpha1.AddOnConfigCoordinates{}
	raw, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("encoding add-on %s: %w", a.Name, err)
	}
	if len(raw) > maxAddOn {
		return nil, fmt.Errorf("its registrations and conditions have %d bytes, more than %d", len(raw), maxAddOn)
	}
	return a, nil
}

// Namespace returns where an add-on runs, and where its secrets and its lease are.
func Namespace(a *addonv1alpha1.ManagedClusterAddOn) string {
	return cmp.Or(a.Status.Namespace, a.Spec.InstallNamespace, addonv1alpha1.DefaultInstallNamespace)
}

// Hosted reports whether an add-on runs on the cluster the agent runs on instead of the
// managed one. In most layouts they are the same.
func Hosted(a *addonv1alpha1.ManagedClusterAddOn) bool {
	return a.Annotations[addonv1alpha1.AnnotationHostingClusterName] != ""
}
