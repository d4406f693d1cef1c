// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var (
	clusterAddOns     = addonv1alpha1.GroupVersion.WithResource("clustermanagementaddons")
	deploymentConfigs = addonv1alpha1.GroupVersion.WithResource(addonv1alpha1.ResourceDeploymentConfig)
)

// newAddOnFan is a fan whose clusters exist.
func newAddOnFan(t *testing.T, name string, clusters int) *fan {
	t.Helper()
	f := newFan(t, name, clusters)
	for _, c := range f.clusters {
		mc := cluster(c)
		mc.Spec.HubAcceptsClient = true
		settled(t, func() error { return create(f.dyn, mc) })
	}
	return f
}

// write creates an object, or merges it into the existing one.
func (f *fan) write(t *testing.T, resource schema.GroupVersionResource, text string) {
	t.Helper()
	u := decoded(t, text)
	reached(t, func() error {
		_, err := f.dyn.Resource(resource).Namespace(u.GetNamespace()).Create(t.Context(), u, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			_, err = f.dyn.Resource(resource).Namespace(u.GetNamespace()).Patch(t.Context(), u.GetName(), types.MergePatchType, []byte(text), metav1.PatchOptions{})
		}
		return err
	})
}

// settings writes the configuration of the fan, and returns the hash of the stored
// object.
func (f *fan) settings(t *testing.T, value string) string {
	t.Helper()
	f.write(t, deploymentConfigs, fmt.Sprintf(`{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"AddOnDeploymentConfig",
		"metadata":{"namespace":%q,"name":"settings"},"spec":{"customizedVariables":[{"name":"V","value":%q}]}}`, f.namespace, value))
	u, err := f.dyn.Resource(deploymentConfigs).Namespace(f.namespace).Get(t.Context(), "settings", metav1.GetOptions{})
	require.NoError(t, err)
	hash, err := addonkit.SpecHash(u.Object)
	require.NoError(t, err)
	return hash
}

// offer writes an add-on with the name of the fan and its settings as the default; it is
// removed with the test.
func (f *fan) offer(t *testing.T, strategy string) {
	t.Helper()
	f.write(t, clusterAddOns, fmt.Sprintf(`{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ClusterManagementAddOn",
		"metadata":{"name":%q,"annotations":{"addon.open-cluster-management.io/lifecycle":"addon-manager"}},"spec":{
		"supportedConfigs":[{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs","defaultConfig":{"namespace":%q,"name":"settings"}}],
		"installStrategy":%s}}`, f.namespace, f.namespace, strategy))
	t.Cleanup(func() {
		require.NoError(t, f.dyn.Resource(clusterAddOns).Delete(context.Background(), f.namespace, metav1.DeleteOptions{}))
	})
}

// instance returns the add-on on a cluster; nil when there is none.
func (f *fan) instance(t *testing.T, cluster string) *addonv1alpha1.ManagedClusterAddOn {
	t.Helper()
	a, err := typed.Get[addonv1alpha1.ManagedClusterAddOn](t.Context(), f.dyn, addons, cluster, f.namespace)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return a
}

// awaitGiven waits until every cluster has the wanted configuration: a hash, "-" for no
// configuration, or "" for no instance; "*" follows a configuration that is applied.
func (f *fan) awaitGiven(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	soon(t, func() bool {
		got = nil
		for _, c := range f.clusters {
			text := ""
			if a := f.instance(t, c); a != nil && a.DeletionTimestamp == nil {
				text = "-"
				for _, r := range a.Status.ConfigReferences {
					text = r.DesiredConfig.SpecHash
					if r.LastAppliedConfig != nil && *r.LastAppliedConfig == *r.DesiredConfig {
						text += "*"
					}
				}
			}
			got = append(got, text)
		}
		return strings.Join(got, " ") == strings.Join(want, " ")
	}, "%v", &got)
}

// awaitProgress waits until the add-on reports this progress for its placement.
func (f *fan) awaitProgress(t *testing.T, message string) {
	t.Helper()
	var last []addonv1alpha1.InstallProgression
	soon(t, func() bool {
		a, err := typed.Get[addonv1alpha1.ClusterManagementAddOn](t.Context(), f.dyn, clusterAddOns, "", f.namespace)
		require.NoError(t, err)
		last = a.Status.InstallProgressions
		for _, p := range last {
			if c := apimeta.FindStatusCondition(p.Conditions, addonv1alpha1.ConditionProgressing); c != nil && c.Message == message {
				return true
			}
		}
		return false
	}, "%+v", &last)
}

// deployAddOn does what an add-on's own controller and a cluster's agent do: it creates a
// work for the configuration of the instance, and marks it as applied and available.
func (f *fan) deployAddOn(t *testing.T, cluster string) {
	t.Helper()
	mark, ok := addonkit.Mark(f.instance(t, cluster).Status.ConfigReferences)
	require.True(t, ok)
	annotations, err := json.Marshal(map[string]string{addonv1alpha1.AnnotationConfigSpecHash: mark})
	require.NoError(t, err)
	name := "addon-" + f.namespace + "-deploy-0"
	f.write(t, works, fmt.Sprintf(`{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"namespace":%q,"name":%q,
		"labels":{"open-cluster-management.io/addon-name":%q},"annotations":%s},
		"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"}}]}}}`,
		cluster, name, f.namespace, annotations))
	status := `{"status":{"conditions":[{"type":"Applied","status":"True","reason":"A","message":"","observedGeneration":1,
		"lastTransitionTime":"2026-01-01T00:00:00Z"},
		{"type":"Available","status":"True","reason":"A","message":"","observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	_, err = f.dyn.Resource(works).Namespace(cluster).Patch(t.Context(), name, types.MergePatchType, []byte(status), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	soon(t, func() bool {
		conditions := f.instance(t, cluster).Status.Conditions
		apimeta.SetStatusCondition(&conditions, metav1.Condition{
			Type:   addonv1alpha1.ConditionManifestApplied,
			Status: metav1.ConditionTrue,
			Reason: "AddonManifestApplied",
		})
		body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
		require.NoError(t, err)
		_, err = f.dyn.Resource(addons).Namespace(cluster).Patch(t.Context(), f.namespace, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		return err == nil
	})
}

func TestAddOnsFollowTheirPlacement(t *testing.T) {
	f := newAddOnFan(t, "follow", 3)
	c := f.clusters
	const synced = "addon.open-cluster-management.io/on-multicluster-hub"
	require.NoError(t, patch(f.dyn, c[0], `{"metadata":{"annotations":{"`+synced+`":"yes"}}}`))
	one := f.settings(t, "one")
	f.place(t, "p", c[0], c[1])
	f.offer(t, `{"type":"Placements","placements":[{"namespace":"follow","name":"p"}]}`)
	f.awaitGiven(t, one, one, "")
	f.awaitProgress(t, "selected clusters 2. configured addons 2/2 progressing..., 0 failed 0 timeout.")
	a := f.instance(t, c[0])
	require.Equal(t, "yes", a.Annotations[synced])
	require.True(t, apimeta.IsStatusConditionTrue(a.Status.Conditions, addonv1alpha1.ConditionConfigured))
	require.Len(t, a.OwnerReferences, 1)
	require.Equal(
		t, "addon.open-cluster-management.io/v1beta1 ClusterManagementAddOn follow",
		a.OwnerReferences[0].APIVersion+" "+a.OwnerReferences[0].Kind+" "+a.OwnerReferences[0].Name,
	)
	require.True(t, *a.OwnerReferences[0].Controller)

	// A changed configuration reaches all clusters; what a user set on one of them stays.
	_, err := f.dyn.Resource(addons).Namespace(c[0]).Patch(
		t.Context(), "follow", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+addonv1alpha1.AnnotationValues+`":"{}"}}}`), metav1.PatchOptions{},
	)
	require.NoError(t, err)
	require.NoError(t, patch(f.dyn, c[0], `{"metadata":{"annotations":{"`+synced+`":null}}}`))
	two := f.settings(t, "two")
	require.NotEqual(t, one, two)
	f.awaitGiven(t, two, two, "")
	soon(t, func() bool { return f.instance(t, c[0]).Annotations[synced] == "" }, "what the cluster has no more goes")
	require.Equal(t, "{}", f.instance(t, c[0]).Annotations[addonv1alpha1.AnnotationValues])

	// Clusters are added and removed, one of them by its user.
	f.place(t, "p", c[1], c[2])
	f.awaitGiven(t, "", two, two)
	exclude := addonv1alpha1.AnnotationPrefixExclude + "follow"
	require.NoError(t, patch(f.dyn, c[1], `{"metadata":{"annotations":{"`+exclude+`":""}}}`))
	f.awaitGiven(t, "", "", two)
	require.NoError(t, patch(f.dyn, c[1], `{"metadata":{"annotations":{"`+exclude+`":null}}}`))
	f.awaitGiven(t, "", two, two)
	require.NoError(t, f.dyn.Resource(addons).Namespace(c[2]).Delete(t.Context(), "follow", metav1.DeleteOptions{}))
	f.awaitGiven(t, "", two, two)
}

func TestAnAddOnIsRolledOutOneClusterAfterTheOther(t *testing.T) {
	f := newAddOnFan(t, "inturn", 2)
	one := f.settings(t, "one")
	f.place(t, "p", f.clusters...)
	f.offer(
		t,
		`{"type":"Placements","placements":[{"namespace":"inturn","name":"p","rolloutStrategy":{"type":"Progressive","progressive":{"maxConcurrency":1}}}]}`,
	)
	f.awaitGiven(t, one, "-")
	f.awaitProgress(t, "selected clusters 2. configured addons 1/2 progressing..., 0 failed 0 timeout.")
	f.deployAddOn(t, f.clusters[0])
	f.awaitGiven(t, one+"*", one)
	f.deployAddOn(t, f.clusters[1])
	f.awaitGiven(t, one+"*", one+"*")
	f.awaitProgress(t, "selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout.")

	// At rest, nothing is written.
	state := func() string {
		u, err := f.dyn.Resource(clusterAddOns).Get(t.Context(), "inturn", metav1.GetOptions{})
		require.NoError(t, err)
		return u.GetResourceVersion() + " " + f.instance(t, f.clusters[0]).ResourceVersion + " " + f.instance(t, f.clusters[1]).ResourceVersion
	}
	rests(t, state, 2*time.Second)

	two := f.settings(t, "two")
	f.awaitGiven(t, two, one+"*")
	soon(t, func() bool {
		return apimeta.IsStatusConditionFalse(f.instance(t, f.clusters[1]).Status.Conditions, addonv1alpha1.ConditionConfigured)
	}, "the cluster that waits does not say so")
}

func TestAManualAddOnIsAdopted(t *testing.T) {
	f := newAddOnFan(t, "byhand", 1)
	one := f.settings(t, "one")
	f.offer(t, `{"type":"Manual"}`)
	f.addon(t, f.clusters[0], "byhand")
	f.awaitGiven(t, one)
	soon(t, func() bool { return len(f.instance(t, f.clusters[0]).OwnerReferences) == 1 })
}

// eventsOfAddOn returns the Events on the add-on of the fan as "Type Reason: note", found
// the way kubectl describe does.
func (f *fan) eventsOfAddOn(t *testing.T) []string {
	t.Helper()
	list, err := f.kube.CoreV1().Events(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{
		FieldSelector: "involvedObject.kind=ClusterManagementAddOn,involvedObject.name=" + f.namespace})
	require.NoError(t, err)
	var out []string
	for _, e := range list.Items {
		out = append(out, e.Type+" "+e.Reason+": "+e.Message)
	}
	slices.Sort(out)
	return out
}

// awaitEvent waits for an Event that begins with text.
func (f *fan) awaitEvent(t *testing.T, text string) {
	t.Helper()
	var last []string
	soon(t, func() bool {
		last = f.eventsOfAddOn(t)
		return slices.ContainsFunc(last, func(e string) bool { return strings.HasPrefix(e, text) })
	}, "%s: %q", text, &last)
}

// awaitCounted waits until the Events that begin with text cover this many clusters, each
// once. They are few: usually one, more when the hub saw the clusters one by one.
func (f *fan) awaitCounted(t *testing.T, text string, want int) {
	t.Helper()
	var last []string
	soon(t, func() bool {
		last = f.eventsOfAddOn(t)
		got := 0
		for _, e := range last {
			if rest, ok := strings.CutPrefix(e, text); ok {
				n := 0
				_, err := fmt.Sscanf(rest, "%d cluster", &n)
				require.NoError(t, err)
				got += n
			}
		}
		require.LessOrEqual(t, got, want, "%q", last)
		return got == want
	}, "%s %d: %q", text, want, &last)
}

func TestEventsTellWhatBecomesOfAnAddOn(t *testing.T) {
	f := newAddOnFan(t, "events", 3)
	c := f.clusters
	one := f.settings(t, "one")
	f.place(t, "p", c...)
	f.offer(t, `{"type":"Placements","placements":[{"namespace":"events","name":"p"}]}`)
	f.awaitGiven(t, one, one, one)
	f.awaitEvent(t, "Normal Installed: Installed on ")
	f.awaitEvent(t, "Normal RolloutStarted: Rolling out addondeploymentconfigs events/settings ("+one[:8]+") to ")
	for _, name := range c {
		f.deployAddOn(t, name)
	}
	f.awaitEvent(t, "Normal RolledOut: 3 clusters of placement events/p have addondeploymentconfigs events/settings ("+one[:8]+")")
	f.place(t, "p", c[0])
	f.awaitGiven(t, one+"*", "", "")
	f.awaitCounted(t, "Normal Removed: Removed from ", 2)
	f.awaitCounted(t, "Normal Installed: Installed on ", 3)

	// A cluster where the add-on cannot be installed is reported, and a failure is
	// reported once.
	f.place(t, "p", c[0], "events-9")
	settled(t, func() error { return create(f.dyn, cluster("events-9")) })
	f.awaitEvent(t, "Warning InstallFailed: applying ManagedClusterAddOn events-9/events: ")
	rests(t, func() string { return strings.Join(f.eventsOfAddOn(t), "\n") }, 2*time.Second)
}
