// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var worksResource = workv1.GroupVersion.WithResource("manifestworks")

// Work is what is cached of a ManifestWork that deploys an add-on.
type Work struct {
	// owner is the add-on instance that it belongs to.
	owner reconcile.Key
	// Mark identifies the configurations it was created with, as addonkit.Mark does; Readable
	// is false when its annotation cannot match any.
	Mark     string
	Readable bool
	// Ready is true when its current generation is applied and available.
	Ready bool
}

// keepWork reads a ManifestWork with the label of an add-on. Works of hooks are left out.
func (x *Index) keepWork(u *unstructured.Unstructured) (Work, bool) {
	m, err := typed.FromUnstructured[workv1.ManifestWork](u)
	if err != nil {
		return Work{}, false
	}
	name := m.Labels[addonv1alpha1.LabelAddOnName]
	if name == "" || strings.HasPrefix(m.Name, addonv1alpha1.WorkNamePrefix+name+addonv1alpha1.WorkSuffixPreDelete) {
		return Work{}, false
	}
	// On a hosting cluster, a label names the cluster that the work is for.
	cluster := m.Namespace
	if of := m.Labels[addonv1alpha1.LabelAddOnNamespace]; of != "" {
		cluster = of
	}
	w := Work{owner: reconcile.Key{Namespace: x.words.of(cluster), Name: x.words.of(name)}}
	mark, ok := config.ReadMark(m.Annotations[addonv1alpha1.AnnotationConfigSpecHash])
	w.Mark, w.Readable = x.words.of(mark), ok
	w.Ready = isCurrent(m, workv1.ConditionApplied) && isCurrent(m, workv1.ConditionAvailable)
	return w, true
}

// isCurrent reports whether a condition is True for the current generation.
func isCurrent(m *workv1.ManifestWork, kind string) bool {
	c := apimeta.FindStatusCondition(m.Status.Conditions, kind)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == m.Generation
}
