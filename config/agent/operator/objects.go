// SPDX-License-Identifier: Apache-2.0

// Package operator holds what installs the operator of Klusterlets, which serves every Klusterlet
// of its cluster: its namespace, rights and Deployment, and the definition of klusterlets.
package operator

import (
	_ "embed"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// ServiceAccount is the identity of the operator.
const ServiceAccount = "klusterlet"

//go:embed operator.yaml
var raw []byte

// Objects returns the objects of an operator with that image, in the order in which to apply them.
func Objects(image string) ([]*unstructured.Unstructured, error) {
	objects, err := manifests.Decode("operator.yaml", raw)
	if err != nil {
		return nil, err
	}
	definition, err := crd.Get(crd.Klusterlets)
	if err != nil {
		return nil, fmt.Errorf("reading the definition of klusterlets: %w", err)
	}
	// It belongs to no Klusterlet, and goes with none.
	definition.SetLabels(nil)
	last := len(objects) - 1
	d, err := typed.FromUnstructured[appsv1.Deployment](objects[last])
	if err != nil {
		return nil, err
	}
	d.Spec.Template.Spec.Containers[0].Image = image
	if objects[last], err = typed.ToUnstructured(d); err != nil {
		return nil, err
	}
	// A Go type cannot leave this out, and the applier must not own a null.
	unstructured.RemoveNestedField(objects[last].Object, "spec", "template", "metadata", "creationTimestamp")
	return append([]*unstructured.Unstructured{definition}, objects...), nil
}
