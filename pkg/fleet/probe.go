// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1beta1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// probeName is that of objects that are written on trial, and never stored.
const probeName = "kubectl-ocm-probe"

// probe is one dry-run write that tells whether a webhook answers: it is refused by
// name, or what comes back bears the webhook's mark. That a write succeeds proves
// nothing: it does so without the webhook, too.
type probe struct {
	// hook is the webhook that is asked, for people.
	hook     string
	resource schema.GroupVersionResource
	object   *unstructured.Unstructured
	// mark tells by the answer that the webhook was there; nil expects a refusal.
	mark func(*unstructured.Unstructured) bool
}

// probes are one for each webhook of a hub, and one for the conversion of add-ons.
func probes() []probe {
	in := metav1.NamespaceDefault
	object := func(gvk schema.GroupVersionKind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
		u := named(gvk, namespace, name)
		u.Object["spec"] = spec
		return u
	}
	empty := map[string]any{"workload": map[string]any{"manifests": []any{}}}
	unreadable := map[string]any{"predicates": []any{map[string]any{"requiredClusterSelector": map[string]any{
		"labelSelector": map[string]any{"matchLabels": map[string]any{"a": "not a label"}}}}}}
	return []probe{
		{
			"managedclustermutators.admission.cluster.open-cluster-management.io", managedClusters,
			object(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", probeName, map[string]any{"hubAcceptsClient": false}),
			func(u *unstructured.Unstructured) bool { return u.GetAnnotations()[clusterv1.AnnotationCreator] != "" },
		},
		{
			"managedclustervalidators.admission.cluster.open-cluster-management.io", managedClusters,
			object(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", "kube-ocm-probe", map[string]any{"hubAcceptsClient": false}), nil,
		},
		{
			"managedclustersetvalidators.admission.cluster.open-cluster-management.io", managedClusterSets,
			object(clusterv1beta2.GroupVersion.WithKind("ManagedClusterSet"), "", probeName+strings.Repeat("-", 50)+"0", map[string]any{}), nil,
		},
		{
			"managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io", clusterv1beta2.GroupVersion.WithResource("managedclustersetbindings"),
			object(clusterv1beta2.GroupVersion.WithKind("ManagedClusterSetBinding"), in, probeName, map[string]any{"clusterSet": "other"}), nil,
		},
		{
			"placementvalidators.admission.cluster.open-cluster-management.io", clusterv1beta1.GroupVersion.WithResource("placements"),
			object(clusterv1beta1.GroupVersion.WithKind("Placement"), in, probeName, unreadable), nil,
		},
		{
			"manifestworkvalidators.admission.work.open-cluster-management.io", workv1.GroupVersion.WithResource("manifestworks"),
			object(workv1.GroupVersion.WithKind("ManifestWork"), in, probeName, empty), nil,
		},
		{
			"manifestworkreplicasetvalidators.admission.work.open-cluster-management.io", workv1alpha1.GroupVersion.WithResource("manifestworkreplicasets"),
			object(workv1alpha1.GroupVersion.WithKind("ManifestWorkReplicaSet"), in, probeName,
				map[string]any{"placementRefs": []any{map[string]any{"name": "p"}}, "manifestWorkTemplate": empty}), nil,
		},
		{
			// It is stored in the older version, dry run or not.
			"the conversion of managedclusteraddons", addonv1beta1.GroupVersion.WithResource("managedclusteraddons"),
			object(addonv1beta1.GroupVersion.WithKind("ManagedClusterAddOn"), in, probeName, map[string]any{}),
			func(*unstructured.Unstructured) bool { return true },
		},
	}
}

// ask returns why the webhook does not answer, "" when it does or when the person may
// not make such objects, so that nobody can tell.
func (p probe) ask(ctx context.Context, hub *Cluster) string {
	answer, err := hub.Client.Resource(p.resource).Namespace(p.object.GetNamespace()).
		Create(ctx, p.object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: FieldManager})
	refused := err != nil && strings.Contains(err.Error(), "admission webhook ")
	switch {
	case refused && (p.mark != nil || !strings.Contains(err.Error(), p.hook)):
		return p.hook + ": not asked: " + oneLine(err.Error()) // another webhook refused it first
	case refused, apierrors.IsForbidden(err), apierrors.IsAlreadyExists(err):
		return ""
	case err != nil:
		return p.hook + ": " + oneLine(err.Error())
	case p.mark != nil && p.mark(answer):
		return ""
	}
	return p.hook + ": what it refuses is let through"
}

// Unanswered asks every webhook of a hub by a write that is not carried out, and
// returns those that do not answer, each with the reason.
func Unanswered(ctx context.Context, hub *Cluster) []string {
	var out []string
	for _, p := range probes() {
		if problem := p.ask(ctx, hub); problem != "" {
			out = append(out, problem)
		}
	}
	return out
}

// runByUs tells whether the hub is run by this project's process: others have other
// webhooks.
func runByUs(ctx context.Context, hub *Cluster) bool {
	d, err := typed.Get[appsv1.Deployment](ctx, hub.Client, deployments, operatorv1.NamespaceOperator, operatorv1.DefaultClusterManagerName)
	return err == nil && d.Labels[operatorv1.LabelCreatedByClusterManager] != ""
}

// unansweredBlocker is what a wait for admission hangs on.
func unansweredBlocker(hub *Cluster, problems []string) *blocker {
	if len(problems) == 0 {
		return nil
	}
	cause := problems[0]
	if len(problems) > 1 {
		cause = fmt.Sprintf("%s, and %d more", cause, len(problems)-1)
	}
	return &blocker{cause: cause, fix: "kubectl logs -n " + operatorv1.NamespaceOperator + " deploy/" + operatorv1.DefaultClusterManagerName + hub.flag()}
}
