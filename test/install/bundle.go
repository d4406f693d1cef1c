// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// serviceVersion is what the Operator Lifecycle Manager acts on in a ClusterServiceVersion.
type serviceVersion struct {
	Metadata struct{ Name string }
	Spec     struct {
		Install struct {
			Spec struct {
				Permissions, ClusterPermissions []struct {
					ServiceAccountName string
					Rules              []rbacv1.PolicyRule
				}
				Deployments []struct {
					Name  string
					Label map[string]string
					Spec  map[string]any
				}
			}
		}
	}
}

// clusterScoped are the kinds without a namespace that a bundle may contain.
var clusterScoped = map[string]bool{"ClusterRole": true, "ClusterRoleBinding": true, "CustomResourceDefinition": true}

// Bundle returns what the Operator Lifecycle Manager creates from a bundle that is installed in
// a namespace: the manifests, and from the ClusterServiceVersion the accounts, permissions and
// Deployments.
func Bundle(folder, namespace string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(folder, "manifests", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s has no manifests: %w", folder, err)
	}
	var out []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a file of this repository
		if err != nil {
			return nil, err
		}
		objects, err := read(nil, text)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		for _, o := range objects {
			if o.GetKind() == "ClusterServiceVersion" {
				created, err := strategy(o, namespace)
				if err != nil {
					return nil, fmt.Errorf("reading %s: %w", file, err)
				}
				out = append(out, created...)
				continue
			}
			if !clusterScoped[o.GetKind()] {
				o.SetNamespace(namespace)
			}
			out = append(out, o)
		}
	}
	return out, nil
}

// strategy returns what is created from a ClusterServiceVersion.
func strategy(o *unstructured.Unstructured, namespace string) (out []*unstructured.Unstructured, err error) {
	raw, err := o.MarshalJSON()
	if err != nil {
		return nil, err
	}
	var version serviceVersion
	if err := json.Unmarshal(raw, &version); err != nil {
		return nil, err
	}
	add := func(kind, group string, object runtime.Object, meta metav1.ObjectMeta) {
		object.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(group, kind))
		u, convert := typed.ToUnstructured(object)
		if convert != nil {
			err = convert
			return
		}
		u.SetName(meta.Name)
		u.SetNamespace(meta.Namespace)
		u.SetLabels(meta.Labels)
		out = append(out, u)
	}
	const rbac = "rbac.authorization.k8s.io/v1"
	spec := version.Spec.Install.Spec
	for i, p := range spec.ClusterPermissions {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("%s-cluster-%d", version.Metadata.Name, i)}
		to := []rbacv1.Subject{{Kind: "ServiceAccount", Name: p.ServiceAccountName, Namespace: namespace}}
		add("ServiceAccount", "v1", &corev1.ServiceAccount{}, metav1.ObjectMeta{Name: p.ServiceAccountName, Namespace: namespace})
		add("ClusterRole", rbac, &rbacv1.ClusterRole{Rules: p.Rules}, meta)
		add("ClusterRoleBinding", rbac, &rbacv1.ClusterRoleBinding{
			Subjects: to, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		}, meta)
	}
	for i, p := range spec.Permissions {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", version.Metadata.Name, i), Namespace: namespace}
		to := []rbacv1.Subject{{Kind: "ServiceAccount", Name: p.ServiceAccountName, Namespace: namespace}}
		add("Role", rbac, &rbacv1.Role{Rules: p.Rules}, meta)
		add("RoleBinding", rbac, &rbacv1.RoleBinding{
			Subjects: to, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		}, meta)
	}
	for _, d := range spec.Deployments {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": d.Spec}}
		u.SetName(d.Name)
		u.SetNamespace(namespace)
		u.SetLabels(d.Label)
		out = append(out, u)
	}
	return out, err
}
