// SPDX-License-Identifier: Apache-2.0

package addonkit_test

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/gotemplate"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/values"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/addontest"
)

//go:embed tenant
var tenantFiles embed.FS

// tenant is an add-on from templates whose agent may run on a hosting cluster: its
// objects are split over both clusters, and it cleans up before it is deleted.
type tenant struct {
	addonkit.HostedByAnnotation
	*gotemplate.AddOn
}

// The compiler checks the methods, because one with a misspelled name would be ignored.
var _ interface {
	addonkit.Hosted
	addonkit.Placed
	addonkit.Healthy
} = tenant{}

// annotationFault makes an instance fail.
const annotationFault = "example.com/fault"

func newTenant(t *testing.T) tenant {
	t.Helper()
	templates, err := gotemplate.New(gotemplate.Config{
		Options: addonkit.Options{Name: "tenant"}, Files: tenantFiles, Dir: "tenant", Hosted: addonkit.HostedByAnnotation{},
		Values: []values.Func{values.Fixed(map[string]any{"Text": "hello"}), values.Annotation},
	})
	require.NoError(t, err)
	return tenant{AddOn: templates}
}

func (tenant) Health() addonkit.Health { return addonkit.Health{Mode: addonkit.HealthDeployments} }

// Manifests returns the manifests of the templates, unless the instance is to fail.
func (n tenant) Manifests(ctx context.Context, i addonkit.Instance) ([]runtime.Object, error) {
	switch i.AddOn.Annotations[annotationFault] {
	case "panic":
		return []runtime.Object{}[:len(i.AddOn.Name)], nil
	case "kind":
		return []runtime.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, nil
	}
	return n.AddOn.Manifests(ctx, i)
}

// tells waits until a condition of an instance has a reason, and its message contains all
// texts.
func tells(t *testing.T, h *addontest.Hub, key reconcile.Key, condition, reason string, texts ...string) {
	t.Helper()
	h.Soon(key.String()+" "+condition, func() error {
		a := instance(t, h, key)
		c := apimeta.FindStatusCondition(a.Status.Conditions, condition)
		if c == nil || c.Reason != reason {
			return fmt.Errorf("no %s %s: %+v", condition, reason, a.Status.Conditions)
		}
		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				return fmt.Errorf("%s does not say %q: %s", condition, text, c.Message)
			}
		}
		return nil
	})
}

func instance(t *testing.T, h *addontest.Hub, key reconcile.Key) *addonv1alpha1.ManagedClusterAddOn {
	t.Helper()
	a, err := typed.Get[addonv1alpha1.ManagedClusterAddOn](t.Context(), h.Admin, addontest.AddOns, key.Namespace, key.Name)
	require.NoError(t, err)
	return a
}

// holds waits until a work has these objects: "ConfigMap default/settings".
func holds(t *testing.T, h *addontest.Hub, cluster, work string, want ...string) {
	t.Helper()
	h.Soon(cluster+"/"+work, func() error {
		w, err := typed.Get[workv1.ManifestWork](t.Context(), h.Admin, addontest.Works, cluster, work)
		if err != nil {
			return err
		}
		var got []string
		for _, raw := range w.Spec.Workload.Manifests {
			m, err := addonkit.Parse(raw.Raw)
			if err != nil {
				return err
			}
			got = append(got, m.String())
		}
		if strings.Join(got, ",") != strings.Join(want, ",") {
			return fmt.Errorf("it holds %q", got)
		}
		return nil
	})
}

const (
	place    = "open-cluster-management-agent-addon"
	deployed = `{"resourceMeta":{"ordinal":0,"group":"apps","version":"v1","kind":"Deployment","resource":"deployments",
		"namespace":"` + place + `","name":"tenant-%s"},
		"conditions":[],"statusFeedback":{"values":[{"name":"ReadyReplicas","fieldValue":{"type":"Integer","integer":%d}},
		{"name":"Replicas","fieldValue":{"type":"Integer","integer":2}}]}}`
	cleaned = `{"resourceMeta":{"ordinal":0,"group":"batch","version":"v1","kind":"Job","resource":"jobs","namespace":"` + place + `","name":"tenant-%s-cleanup"},
		"conditions":[],"statusFeedback":{"values":[{"name":"JobComplete","fieldValue":{"type":"String","string":"True"}}]}}`
)

// hostOn changes the hosting cluster of an instance.
func hostOn(t *testing.T, h *addontest.Hub, key reconcile.Key, host string) {
	t.Helper()
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, addonv1alpha1.AnnotationHostingClusterName, host)
	_, err := h.Admin.Resource(addontest.AddOns).Namespace(key.Namespace).Patch(t.Context(), key.Name, types.MergePatchType, body, metav1.PatchOptions{})
	require.NoError(t, err)
}

// finalizers waits until an instance has this many finalizers.
func finalizers(t *testing.T, h *addontest.Hub, key reconcile.Key, want int) {
	t.Helper()
	h.Soon("finalizers of "+key.String(), func() error {
		if a := instance(t, h, key); len(a.Finalizers) != want {
			return fmt.Errorf("it has %q", a.Finalizers)
		}
		return nil
	})
}

func remove(t *testing.T, h *addontest.Hub, key reconcile.Key) {
	t.Helper()
	require.NoError(t, h.Admin.Resource(addontest.AddOns).Namespace(key.Namespace).Delete(t.Context(), key.Name, metav1.DeleteOptions{}))
}

func leave(t *testing.T, h *addontest.Hub, cluster string) {
	t.Helper()
	require.NoError(t, h.Admin.Resource(addontest.Clusters).Delete(t.Context(), cluster, metav1.DeleteOptions{}))
}

func TestAHostedAddOnFollowsItsHostingCluster(t *testing.T) {
	h := addontest.New(t, newTenant(t))
	h.Join("h1")
	h.Join("h2")
	one, other, own := h.Install("c1", "h1"), h.Install("c2", "h2"), h.Install("c3", "")
	const valid, invalid = addonv1alpha1.ReasonHostingClusterValid, addonv1alpha1.ReasonHostingClusterInvalid
	tells(t, h, one, addonv1alpha1.ConditionHostingClusterValidity, valid)

	// The annotation splits the objects; without a hosting cluster, all are on the
	// managed one.
	holds(t, h, "c1", "addon-tenant-deploy-0", "ConfigMap default/settings")
	holds(t, h, "h1", "addon-tenant-deploy-hosting-c1-0", "Deployment "+place+"/tenant-c1")
	holds(t, h, "c3", "addon-tenant-deploy-0", "Deployment "+place+"/tenant-c3", "Service "+place+"/tenant", "ConfigMap default/settings")

	// Its health is that of the workload on the hosting cluster.
	h.Report("c1", "addon-tenant-deploy-0", "")
	h.Report("h1", "addon-tenant-deploy-hosting-c1-0", fmt.Sprintf(deployed, "c1", 0))
	tells(t, h, one, addonv1alpha1.ConditionHostingManifestApplied, addonv1alpha1.ReasonManifestApplied)
	tells(t, h, one, addonv1alpha1.ConditionAvailable, addonv1alpha1.ReasonProbeUnavailable, "tenant-c1 has no ready replica of 2")
	h.Report("h1", "addon-tenant-deploy-hosting-c1-0", fmt.Sprintf(deployed, "c1", 1))
	tells(t, h, one, addonv1alpha1.ConditionAvailable, addonv1alpha1.ReasonProbeAvailable)
	h.Report("h2", "addon-tenant-deploy-hosting-c2-0", fmt.Sprintf(deployed, "c2", 2))
	h.Report("c2", "addon-tenant-deploy-0", "")
	tells(t, h, other, addonv1alpha1.ConditionAvailable, addonv1alpha1.ReasonProbeAvailable)
	tells(t, h, other, addonv1alpha1.ConditionManifestApplied, addonv1alpha1.ReasonManifestApplied)
	tells(t, h, other, addonv1alpha1.ConditionHostingManifestApplied, addonv1alpha1.ReasonManifestApplied)
	undisturbed := instance(t, h, other).ResourceVersion

	// Withdrawing the acceptance of the hosting cluster removes nothing.
	h.Accept("h1", false)
	tells(t, h, one, addonv1alpha1.ConditionHostingClusterValidity, invalid, "it is not accepted", "accept it")
	holds(t, h, "h1", "addon-tenant-deploy-hosting-c1-0", "Deployment "+place+"/tenant-c1")
	h.Accept("h1", true)
	tells(t, h, one, addonv1alpha1.ConditionHostingClusterValidity, valid)

	// Deleting the hosting cluster does.
	leave(t, h, "h1")
	tells(
		t, h, one, addonv1alpha1.ConditionHostingClusterValidity, invalid,
		"there is no ManagedCluster with this name; join it under this name, or change annotation",
	)
	h.Gone(addontest.Works, reconcile.Key{Namespace: "h1", Name: "addon-tenant-deploy-hosting-c1-0"})
	holds(t, h, "c1", "addon-tenant-deploy-0", "ConfigMap default/settings")
	finalizers(t, h, one, 0)
	require.Equal(t, undisturbed, instance(t, h, other).ResourceVersion, "no other instance is touched")

	hostOn(t, h, one, "h2")
	tells(t, h, one, addonv1alpha1.ConditionHostingClusterValidity, valid)
	holds(t, h, "h2", "addon-tenant-deploy-hosting-c1-0", "Deployment "+place+"/tenant-c1")
	remove(t, h, own)
	h.Report("c3", "addon-tenant-pre-delete", fmt.Sprintf(cleaned, "c3"))
	h.Gone(addontest.AddOns, own)
}

func TestAHostedAddOnIsDeleted(t *testing.T) {
	h := addontest.New(t, newTenant(t))
	h.Join("h1")
	one, other := h.Install("c1", "h1"), h.Install("c2", "h1")
	hook := reconcile.Key{Namespace: "h1", Name: "addon-tenant-pre-delete-hosting-c1"}
	for _, key := range []reconcile.Key{one, other} {
		finalizers(t, h, key, 2)
	}
	remove(t, h, one)
	tells(
		t, h, one, addonv1alpha1.ConditionHookManifestCompleted, addonv1alpha1.ReasonHookNotCompleted,
		"tenant-c1-cleanup of cluster h1 has not completed", "it is given up at",
	)
	holds(t, h, "h1", hook.Name, "Job "+place+"/tenant-c1-cleanup")
	holds(t, h, "h1", "addon-tenant-deploy-hosting-c1-0", "Deployment "+place+"/tenant-c1")
	h.Report("h1", hook.Name, fmt.Sprintf(cleaned, "c1"))
	h.Gone(addontest.AddOns, one)
	h.Gone(addontest.Works, hook) // and it is not created again
	h.Gone(addontest.Works, reconcile.Key{Namespace: "h1", Name: "addon-tenant-deploy-hosting-c1-0"})
	holds(t, h, "h1", "addon-tenant-deploy-hosting-c2-0", "Deployment "+place+"/tenant-c2")

	// There is no wait for a hook on a cluster that no longer exists.
	remove(t, h, other)
	tells(t, h, other, addonv1alpha1.ConditionHookManifestCompleted, addonv1alpha1.ReasonHookNotCompleted)
	leave(t, h, "h1")
	h.Gone(addontest.AddOns, other)
}
