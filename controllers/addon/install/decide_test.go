// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/selection"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const prefixed = "addon.open-cluster-management.io/on-multicluster-hub"

// addOn returns an add-on with an install strategy; lifecycle "-" means no annotation.
func addOn(lifecycle, strategy string) *addonv1alpha1.ClusterManagementAddOn {
	a := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "metrics", UID: "the-add-on"}}
	if lifecycle != "-" {
		a.Annotations = map[string]string{addonv1alpha1.AnnotationLifecycle: lifecycle}
	}
	a.Spec.InstallStrategy.Type = strategy
	return a
}

func placement(clusters ...string) selection.Placement {
	return selection.Placement{Found: true, Decided: true, Clusters: clusters}
}

// clusters parses clusters from texts like "c1", "c1 deleting", "c1 key=value".
func clusters(texts ...string) map[string]selection.Cluster {
	out := map[string]selection.Cluster{}
	for _, text := range texts {
		name, rest, _ := strings.Cut(text, " ")
		c := selection.Cluster{Exists: true, Deleting: rest == "deleting"}
		if key, value, ok := strings.Cut(rest, "="); ok {
			c.Annotations = map[string]string{key: value, "other": "x"}
		}
		out[name] = c
	}
	return out
}

// owned returns an instance that this loop has created.
func owned(cluster string) instance.AddOn {
	return instance.AddOn{
		Cluster: cluster, Name: "metrics", UID: types.UID("a-" + cluster), Version: "5",
		Owners: []metav1.OwnerReference{owner(addOn("-", ""), true)},
	}
}

// with changes an instance.
func with(a instance.AddOn, change func(*instance.AddOn)) instance.AddOn {
	change(&a)
	return a
}

// outline describes a plan: "apply c1 uid owner key=value", "delete c1".
func outline(p reconcile.Plan) []string {
	var out []string
	for _, a := range reconcile.Of[reconcile.Apply](p.Writes) {
		o := a.Object
		line := "apply " + o.GetNamespace() + "/" + o.GetName()
		if o.GetUID() != "" {
			line += " " + string(o.GetUID())
		}
		for _, ref := range o.GetOwnerReferences() {
			line += fmt.Sprintf(
				" owner %s %s %s controller=%t block=%t", ref.APIVersion, ref.Name, ref.UID, *ref.Controller,
				*ref.BlockOwnerDeletion,
			)
		}
		for _, key := range slices.Sorted(maps.Keys(o.GetAnnotations())) {
			line += " " + strings.TrimPrefix(key, addonv1alpha1.AnnotationPrefix+"/") + "=" + o.GetAnnotations()[key]
		}
		out = append(out, line)
	}
	for _, d := range reconcile.Of[reconcile.Remove](p.Writes) {
		out = append(out, fmt.Sprintf("delete %s/%s %s %s", d.Namespace, d.Name, d.UID, d.Version))
	}
	return out
}

const (
	byAddOn = " owner addon.open-cluster-management.io/v1beta1 metrics the-add-on controller=true block=true"
	beside  = " owner addon.open-cluster-management.io/v1beta1 metrics the-add-on controller=false block=true"
	exclude = addonv1alpha1.AnnotationPrefixExclude + "metrics=true"
)

func TestDecide(t *testing.T) {
	const placements, manual = addonv1alpha1.InstallStrategyPlacements, addonv1alpha1.InstallStrategyManual
	cases := map[string]struct {
		addOn      *addonv1alpha1.ClusterManagementAddOn
		placements []selection.Placement
		instances  []instance.AddOn
		clusters   map[string]selection.Cluster
		want       []string
	}{
		"the union of all placements": {
			addOn:      addOn("-", placements),
			placements: []selection.Placement{placement("c2", "c1"), placement("c1"), {}},
			clusters:   clusters("c1", "c2"),
			want:       []string{"apply c1/metrics" + byAddOn, "apply c2/metrics" + byAddOn},
		},
		"annotations of the cluster with the prefix": {
			addOn:      addOn("addon-manager", placements),
			placements: []selection.Placement{placement("c1")},
			clusters:   clusters("c1 " + prefixed + "=yes"),
			want:       []string{"apply c1/metrics" + byAddOn + " on-multicluster-hub=yes"},
		},
		"the install namespace is a field of the instance": {
			addOn:      addOn("-", placements),
			placements: []selection.Placement{placement("c1")},
			clusters:   clusters("c1 " + addonv1alpha1.AnnotationInstallNamespace + "=x"),
			want:       []string{"apply c1/metrics" + byAddOn},
		},
		"nothing without a cluster, on one that goes, on one that is left out": {
			addOn:      addOn("-", placements),
			placements: []selection.Placement{placement("c1", "c2", "c3")},
			clusters:   clusters("c2 deleting", "c3 "+exclude),
		},
		"what is so already is not written": {
			addOn:      addOn("-", placements),
			placements: []selection.Placement{placement("c1")},
			clusters:   clusters("c1"),
			instances:  []instance.AddOn{owned("c1")},
		},
		"not selected is deleted, whoever made it": {
			addOn:      addOn("-", placements),
			placements: []selection.Placement{placement("c1")},
			clusters:   clusters("c1", "c2", "c3"),
			instances:  []instance.AddOn{owned("c1"), owned("c2"), with(owned("c3"), func(a *instance.AddOn) { a.Owners = nil })},
			want:       []string{"delete c2/metrics a-c2 5", "delete c3/metrics a-c3 5"},
		},
		"a placement that is missing selects nothing": {
			addOn:      addOn("-", placements),
			placements: []selection.Placement{{}},
			clusters:   clusters("c1"),
			instances:  []instance.AddOn{owned("c1")},
			want:       []string{"delete c1/metrics a-c1 5"},
		},
		"one without a decision says nothing yet": {
			addOn:      addOn("-", placements),
			placements: []selection.Placement{placement("c1"), {Found: true}},
			clusters:   clusters("c1", "c2", "c3 "+exclude),
			instances:  []instance.AddOn{owned("c2"), owned("c3")},
			want:       []string{"apply c1/metrics" + byAddOn, "delete c3/metrics a-c3 5"},
		},
		"left out is deleted": {
			addOn:      addOn("-", placements),
			placements: []selection.Placement{placement("c1")},
			clusters:   clusters("c1 " + exclude),
			instances:  []instance.AddOn{owned("c1")},
			want:       []string{"delete c1/metrics a-c1 5"},
		},
		"left out of another add-on is not left out": {
			addOn:      addOn("-", placements),
			placements: []selection.Placement{placement("c1")},
			clusters:   clusters("c1 " + addonv1alpha1.AnnotationPrefixExclude + "metrics2=x"),
			want:       []string{"apply c1/metrics" + byAddOn},
		},
		"a cluster that goes is emptied by others": {
			addOn:      addOn("-", placements),
			placements: []selection.Placement{placement()},
			clusters:   clusters("c1 deleting"),
			instances:  []instance.AddOn{owned("c1")},
		},
		"one on its way out is waited for": {
			addOn:      addOn("-", placements),
			placements: []selection.Placement{placement("c1")},
			clusters:   clusters("c1"),
			instances:  []instance.AddOn{with(owned("c1"), func(a *instance.AddOn) { a.Deleting, a.Owners = true, nil })},
		},
		"what a user made is adopted": {
			addOn:     addOn("-", manual),
			clusters:  clusters("c1 " + prefixed + "=yes"),
			instances: []instance.AddOn{with(owned("c1"), func(a *instance.AddOn) { a.Owners = nil })},
			want:      []string{"apply c1/metrics a-c1" + byAddOn},
		},
		"an owner of the same name that is gone is none": {
			addOn:    addOn("-", manual),
			clusters: clusters("c1"),
			instances: []instance.AddOn{
				with(owned("c1"), func(a *instance.AddOn) { a.Owners[0].UID = "older"; a.Owners[0].Controller = nil }),
			},
			want: []string{"apply c1/metrics a-c1" + byAddOn},
		},
		"another controller stays": {
			addOn:     addOn("-", manual),
			clusters:  clusters("c1"),
			instances: []instance.AddOn{with(owned("c1"), func(a *instance.AddOn) { a.Owners[0].UID = "another" })},
			want:      []string{"apply c1/metrics a-c1" + beside},
		},
		"manual neither makes nor removes": {
			addOn:      addOn("-", manual),
			placements: []selection.Placement{placement("c2")},
			clusters:   clusters("c1", "c2"),
			instances:  []instance.AddOn{owned("c1")},
		},
		"annotations follow the cluster": {
			addOn:      addOn("-", placements),
			placements: []selection.Placement{placement("c1", "c2", "c3")},
			clusters:   clusters("c1 "+prefixed+"=new", "c2", "c3 "+prefixed+"=same"),
			instances: []instance.AddOn{
				with(owned("c1"), given("old")), with(owned("c2"), given("old")), with(owned("c3"), given("same")),
			},
			want: []string{"apply c1/metrics a-c1" + byAddOn + " on-multicluster-hub=new", "apply c2/metrics a-c2" + byAddOn},
		},
		"an annotation of a user stays": {
			addOn:      addOn("-", placements),
			placements: []selection.Placement{placement("c1")},
			clusters:   clusters("c1"),
			instances: []instance.AddOn{
				with(
					owned("c1"), func(a *instance.AddOn) { a.Annotations = map[string]string{addonv1alpha1.AnnotationValues: "{}"} },
				),
			},
		},
		"from placements to manual what was copied stays": {
			addOn:    addOn("-", manual),
			clusters: clusters("c1", "c2"),
			instances: []instance.AddOn{
				with(owned("c1"), given("old")), with(with(owned("c2"), given("old")), func(a *instance.AddOn) { a.Owners = nil }),
			},
			want: []string{"apply c2/metrics a-c2" + byAddOn + " on-multicluster-hub=old"},
		},
		"one that installs itself has annotations synced and nothing else": {
			addOn:      addOn("self", placements),
			placements: []selection.Placement{placement("c1", "c2", "c3")},
			clusters:   clusters("c1 "+prefixed+"=yes", "c2", "c3", "c4"),
			instances: []instance.AddOn{
				with(owned("c1"), func(a *instance.AddOn) { a.Owners = nil }), with(owned("c2"), given("old")), owned("c4"),
			},
			want: []string{"apply c1/metrics a-c1 on-multicluster-hub=yes", "apply c2/metrics a-c2" + byAddOn},
		},
		"the empty lifecycle is not managed": {
			addOn:     addOn("", manual),
			clusters:  clusters("c1"),
			instances: []instance.AddOn{with(owned("c1"), func(a *instance.AddOn) { a.Owners = nil })},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Decide(State{AddOn: tc.addOn, Placements: tc.placements, Instances: tc.instances, Clusters: tc.clusters})
			require.Empty(t, cmp.Diff(tc.want, outline(got)))
		})
	}
}

// given gives an instance the annotation, applied by this loop.
func given(value string) func(*instance.AddOn) {
	return func(a *instance.AddOn) {
		a.Annotations, a.Given = map[string]string{prefixed: value}, []string{prefixed}
	}
}

func TestAnAddOnThatIsDeletedIsLeftToItsOwners(t *testing.T) {
	a := addOn("-", addonv1alpha1.InstallStrategyPlacements)
	gone := metav1.NewTime(time.Unix(1, 0))
	a.DeletionTimestamp = &gone
	require.Empty(
		t,
		outline(Decide(State{
			AddOn:      a,
			Placements: []selection.Placement{placement("c1")},
			Instances:  []instance.AddOn{owned("c2")},
			Clusters:   clusters("c1", "c2"),
		})),
	)
}
