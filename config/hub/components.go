// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/image"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// RegistrationAccount is the ServiceAccount of the loops of registration in the split layout.
const RegistrationAccount = "registration-controller-sa"

// PermissionsRole has what the loop of ClusterPermissions needs in the split layout. It is
// there only with the gate.
const PermissionsRole = "open-cluster-management:cluster-manager-work:permissions"

// accountSuffix and the name of a component are the name of its ServiceAccount.
const accountSuffix = "-sa"

// ComponentNames are the components of the split layout. The name of a Deployment is Name, a
// hyphen, and that of the component.
var ComponentNames = []string{
	"registration-controller", "registration-webhook", "work-webhook", "addon-webhook", "placement-controller", "addon-manager-controller", "work-controller",
}

// AccountOf returns the ServiceAccount of a component of the split layout.
func AccountOf(component string) string {
	if component == "addon-manager-controller" {
		return AddOnManager
	}
	return component + accountSuffix
}

// Component returns what a component of the split layout needs to run: its ServiceAccount,
// its roles with their bindings, and its Service.
func Component(name string) ([]*unstructured.Unstructured, error) {
	account := AccountOf(name)
	var out []*unstructured.Unstructured
	if account != AddOnManager { // which exists in every layout
		out = append(out, object("v1", "ServiceAccount", ComponentNamespace, account))
	}
	listed, err := read("manifests/components/" + name + ".yaml")
	if err != nil {
		return nil, err
	}
	for _, u := range listed {
		out = append(out, u)
		if !strings.HasSuffix(u.GetKind(), "Role") {
			continue
		}
		binding := object(u.GetAPIVersion(), u.GetKind()+"Binding", u.GetNamespace(), u.GetName())
		binding.Object["roleRef"] = map[string]any{"apiGroup": u.GroupVersionKind().Group, "kind": u.GetKind(), "name": u.GetName()}
		binding.Object["subjects"] = []any{map[string]any{"kind": "ServiceAccount", "namespace": ComponentNamespace, "name": account}}
		out = append(out, binding)
	}
	for _, u := range out {
		setLabel(u, inventoryLabel, Name)
	}
	return out, nil
}

// EgressPolicy is the NetworkPolicy about what the pods of the components reach, IngressPolicy
// that about the ports of webhooks, and ProcessPolicy that of the one process of the compact layout.
const (
	EgressPolicy  = "allow-egress"
	IngressPolicy = "allow-hub-ingress"
	ProcessPolicy = "cluster-manager-traffic"
)

// Policies returns the NetworkPolicies of the components.
func Policies() ([]*unstructured.Unstructured, error) {
	return read("manifests/components/policies.yaml")
}

// PoliciesOfCompact returns the one NetworkPolicy of the compact layout.
func PoliciesOfCompact() ([]*unstructured.Unstructured, error) {
	return read("manifests/components/compact.yaml")
}

func object(version, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// isOfCompact reports whether an object is only for the compact layout, in which Services of
// the other namespace lead to the hub process.
func isOfCompact(u *unstructured.Unstructured) bool {
	return u.GetKind() == "Service" && u.GetNamespace() == ComponentNamespace
}

// CheckImages returns an error for an image of the spec that does not run a component of the split
// layout.
func CheckImages(s operatorv1.ClusterManagerSpec) error {
	return errors.Join(image.Check("registrationImagePullSpec", s.RegistrationImagePullSpec), image.Check("workImagePullSpec", s.WorkImagePullSpec),
		image.Check("placementImagePullSpec", s.PlacementImagePullSpec), image.Check("addOnManagerImagePullSpec", s.AddOnManagerImagePullSpec))
}

// FlagKeepAPIs is the argument of the process for Options.KeepAPIs.
const FlagKeepAPIs = "--skip-remove-crds"

// chooseLayout makes the Deployment run the hub, or the operator of the split layout, and says what
// its removal keeps.
func (o *Options) chooseLayout(container map[string]any) error {
	switch o.Layout {
	case "", LayoutCompact:
		container["args"] = []any{"run"}
	case LayoutSplit:
		container["args"] = []any{"operator"}
	default:
		return fmt.Errorf("there is no layout %q", o.Layout)
	}
	if o.KeepAPIs {
		container["args"] = append(container["args"].([]any), FlagKeepAPIs)
	}
	return nil
}
