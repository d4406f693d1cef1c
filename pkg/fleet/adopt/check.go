// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// newest is the newest release of the other operator whose hub we know.
var newest = version.MustParseGeneric("1.3")

// check refuses what cannot be adopted, before any write. A resumed adoption is not judged by
// the health of a hub that it has stopped itself.
func (s *state) check() error {
	if !s.foreign() && s.record == nil && s.ours == nil {
		return fleet.Refuse("there is no hub to adopt", "nothing of another operator's hub is there", Install.With())
	}
	for _, check := range []func() error{s.checkLayout, s.checkManager, s.checkDrivers, s.checkOLM, s.checkVersions, s.checkHealth} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

const cannot = "this hub cannot be adopted"

// checkLayout refuses our own split layout, whose components have the names of the other hub's.
func (s *state) checkLayout() error {
	for _, u := range s.live {
		if u.GetKind() == "Deployment" && u.GetNamespace() == operatorv1.NamespaceHub && teardown.IsHubComponent(u) {
			return fleet.Refuse("this hub is ours, in the split layout", "deployment "+u.GetNamespace()+"/"+u.GetName()+" is one of its components",
				Compact.With())
		}
	}
	return nil
}

func (s *state) checkManager() error {
	if len(s.managers) != 1 || s.managers[0].Name != manager {
		var names []string
		for _, cm := range s.managers {
			names = append(names, cm.Name)
		}
		return fleet.Refuse(cannot, "its ClusterManagers are "+fleet.OrElse(strings.Join(names, ", "), "gone")+": there must be one, "+manager,
			fleet.Advice("remove the others; one of another name cannot be taken over"))
	}
	cm := s.managers[0]
	switch {
	case cm.DeletionTimestamp != nil:
		return fleet.Refuse(cannot, "clustermanager/"+manager+" is being deleted", fleet.Advice("wait until that hub is gone, then install ours"))
	case cm.Spec.DeployOption.Mode == operatorv1.InstallModeHosted:
		return fleet.Refuse(cannot, "it is hosted: its controllers run on another cluster", fleet.Advice("leave it to its operator"))
	}
	return nil
}

// checkDrivers refuses hubs that agents reach in a way that ours does not serve.
func (s *state) checkDrivers() error {
	spec := s.managers[0].Spec
	if spec.RegistrationConfiguration != nil {
		for _, d := range spec.RegistrationConfiguration.RegistrationDrivers {
			if d.AuthType != operatorv1.AuthTypeCSR && d.AuthType != "" {
				return fleet.Refuse(cannot, "agents register by driver "+string(d.AuthType)+", which ours does not serve",
					fleet.Advice("register them by driver csr first, and remove that one from spec.registrationConfiguration.registrationDrivers"))
			}
		}
	}
	if w := spec.WorkConfiguration; w != nil && w.WorkDriver != "" && w.WorkDriver != "kube" {
		return fleet.Refuse(cannot, "works reach the agents by driver "+w.WorkDriver+", which ours does not serve",
			fleet.Advice("set spec.workConfiguration.workDriver to kube first"))
	}
	return nil
}

// checkOLM refuses to remove what the Operator Lifecycle Manager would put back.
func (s *state) checkOLM() error {
	if s.operator == nil {
		return nil
	}
	owner := s.operator.Labels["olm.owner"]
	for _, ref := range s.operator.OwnerReferences {
		if ref.Kind == "ClusterServiceVersion" {
			owner = ref.Name
		}
	}
	if owner == "" {
		return nil
	}
	return fleet.Refuse(cannot, "the Operator Lifecycle Manager would put its operator back", RemoveCSV.With("csv", owner, "namespace", s.operator.Namespace))
}

// checkVersions refuses APIs that are newer than what we know, or much older: objects may be
// stored in versions that ours does not serve.
func (s *state) checkVersions() error {
	kinds, err := crd.Hub()
	if err != nil {
		return err
	}
	for _, k := range kinds {
		live := s.live[key(k)]
		if live == nil || isOurs(live) {
			continue
		}
		said := live.GetAnnotations()[operatorv1.AnnotationVersion]
		if v, err := version.ParseGeneric(said); err == nil && version.MajorMinor(v.Major(), v.Minor()).GreaterThan(newest) {
			return fleet.Refuse(cannot, "customresourcedefinition/"+k.GetName()+": it is of release "+said+", which is newer than "+newest.String(),
				fleet.Advice("use a newer release of this program"))
		}
		have := versionsOf(k)
		for _, v := range versionsOf(live) {
			if !slices.Contains(have, v) {
				return fleet.Refuse(cannot, "customresourcedefinition/"+k.GetName()+": it has version "+v+", which ours does not serve",
					fleet.Advice("if that version is an old one, upgrade this hub by its own operator first; otherwise use a newer release of this program"))
			}
		}
	}
	return nil
}

// versionsOf returns the versions of a definition.
func versionsOf(u *unstructured.Unstructured) []string {
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	var out []string
	for _, v := range versions {
		m, _ := v.(map[string]any)
		name, _, _ := unstructured.NestedString(m, "name")
		out = append(out, name)
	}
	return out
}

// checkHealth refuses a hub that is changing or does not work: adoption would hide why.
func (s *state) checkHealth() error {
	if s.resumes() || !s.foreign() {
		return nil
	}
	fix := fleet.Advice("repair it with its own operator first, or wait until that is done")
	if s.operator != nil {
		if ok, ready := workload.RolledOut(s.operator); !ok {
			return fleet.Refuse("the operator of this hub is not ready", "deployment "+s.operator.Namespace+"/"+s.operator.Name+": "+ready, fix)
		}
	}
	for _, u := range append(s.others(deciding), s.others(admitting)...) {
		d, err := typed.FromUnstructured[appsv1.Deployment](u)
		if err != nil {
			return fmt.Errorf("reading %s: %w", fleet.Describe(u), err)
		}
		if ok, ready := workload.RolledOut(d); !ok {
			return fleet.Refuse("this hub is not healthy", "deployment "+d.Namespace+"/"+d.Name+": "+ready, fix)
		}
	}
	cm := s.managers[0]
	for kind, good := range map[string]metav1.ConditionStatus{
		operatorv1.ConditionApplied: metav1.ConditionTrue, operatorv1.ConditionProgressing: metav1.ConditionFalse,
		operatorv1.ConditionHubRegistrationDegraded: metav1.ConditionFalse, operatorv1.ConditionHubPlacementDegraded: metav1.ConditionFalse,
	} {
		if c := apimeta.FindStatusCondition(cm.Status.Conditions, kind); c != nil && c.Status != good {
			return fleet.Refuse("this hub is not healthy", fmt.Sprintf("clustermanager/%s: %s=%s: %s", manager, c.Type, c.Status, c.Message), fix)
		}
	}
	if cm.Status.ObservedGeneration != cm.Generation {
		return fleet.Refuse("this hub is not healthy", "its operator has not seen the last change of clustermanager/"+manager, fix)
	}
	return nil
}

// rights are what an adoption, and the way back, needs on the hub.
var rights = []fleet.Right{
	{Resource: fleet.Deployments, Namespace: operatorv1.NamespaceOperator, Verbs: []string{"create", "patch", "update", "delete"}},
	{Resource: fleet.Deployments, Namespace: operatorv1.NamespaceHub, Verbs: []string{"create", "update", "delete"}},
	{Resource: fleet.ConfigMaps, Namespace: operatorv1.NamespaceOperator, Verbs: []string{"create", "patch", "delete"}},
	{Resource: fleet.ServiceAccounts, Namespace: operatorv1.NamespaceHub, Verbs: []string{"create", "patch", "delete"}},
	{Resource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, Namespace: operatorv1.NamespaceHub, Verbs: []string{"create", "delete"}},
	{Resource: fleet.Leases, Namespace: operatorv1.NamespaceOperator, Verbs: []string{"delete"}},
	{Resource: fleet.Leases, Namespace: operatorv1.NamespaceHub, Verbs: []string{"delete"}},
	{Resource: fleet.ClusterRoles, Verbs: []string{"create", "patch", "update", "delete", "escalate", "bind"}},
	{Resource: fleet.ClusterBindings, Verbs: []string{"create", "patch", "update", "delete"}},
	{Resource: fleet.Definitions, Verbs: []string{"patch", "update"}},
	{Resource: fleet.MutatingHooks, Verbs: []string{"update", "delete"}},
	{Resource: fleet.ValidatingHooks, Verbs: []string{"update", "delete"}},
	{Resource: fleet.Namespaces, Verbs: []string{"patch"}},
	{Resource: fleet.ClusterManagers, Verbs: []string{"patch"}},
}

func checkRights(ctx context.Context, c *fleet.Cluster) error {
	missing, err := fleet.MissingRights(ctx, c, rights)
	if err != nil {
		return fleet.Explain("checking your rights", c, err)
	}
	if len(missing) > 0 {
		return fleet.Refuse("you lack rights on "+c.String(), "missing: "+strings.Join(missing, ", "), fleet.Advice("use a context of an administrator of the hub"))
	}
	return nil
}
