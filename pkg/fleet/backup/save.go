// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// pageSize bounds how many objects are in memory at once: works may have half a megabyte each.
const pageSize = 100

// SaveOptions say what to save.
type SaveOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Program is the version of the program.
	Program string
	// Secrets are saved, too; no other Secret is.
	Secrets []types.NamespacedName
	// Out receives the backup. It is complete only if Save returns no error.
	Out io.Writer
}

// SaveResult is what was saved.
type SaveResult struct {
	Header Header `json:"backup"`
	// Counts are the numbers of objects by kind, SHA256 is the checksum of the backup.
	Counts map[string]int `json:"counts"`
	SHA256 string         `json:"sha256"`
	// Bytes is the size of the file.
	Bytes int64 `json:"bytes"`
	// Secret is the number of works with Secrets among their manifests.
	Secret int `json:"worksWithSecrets"`
	// Deleted are objects that were left out because they are being deleted.
	Deleted []string `json:"beingDeleted,omitempty"`
	// Foreign are kinds of configurations that add-ons refer to and no backup has.
	Foreign []string `json:"foreignConfigurations,omitempty"`
}

type saver struct {
	SaveOptions
	w      *writer
	result SaveResult
	// places are the namespaces to save, roles the ClusterRoles and Roles, as namespace/name.
	places, roles, foreign map[string]bool
}

// Save writes a backup of a hub. It only reads.
func Save(ctx context.Context, o SaveOptions) (SaveResult, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	s := &saver{SaveOptions: o, w: newWriter(o.Out), places: map[string]bool{}, roles: map[string]bool{}, foreign: map[string]bool{}}
	r.Step("reading the hub")
	if err := s.begin(ctx, r); err != nil {
		return s.result, r.Fail(err)
	}
	for _, k := range order {
		r.Detail(k.resource.Resource)
		err := s.list(ctx, k)
		if err != nil {
			return s.result, r.Fail(fleet.Explain("saving "+k.resource.Resource, o.Hub, err))
		}
	}
	end, err := s.w.end()
	if err != nil {
		return s.result, r.Fail(err)
	}
	s.result.Counts, s.result.SHA256, s.result.Bytes, s.result.Foreign = end.Counts, end.SHA256, s.w.bytes, slices.Sorted(maps.Keys(s.foreign))
	r.Done("")
	return s.result, nil
}

// begin writes the header, and finds the namespaces.
func (s *saver) begin(ctx context.Context, r *fleet.Run) error {
	if _, err := fleet.ServerVersion(ctx, s.Hub); err != nil {
		return err
	}
	if err := fleet.NeedHub(ctx, s.Hub); err != nil {
		return err
	}
	at, hash, err := trust.OfHub(ctx, s.Hub)
	if err != nil {
		return err
	}
	s.result.Header = Header{APIVersion: apiVersion, Kind: headerKind, Program: s.Program, Server: at.Server, CAHash: hash, Created: r.Now().UTC()}
	d, err := hub.Deployment(ctx, s.Hub)
	if err != nil {
		return err
	}
	if d != nil && !hub.OthersHub(d) {
		s.result.Header.Hub = hub.TagOf(hub.ImageOf(d))
	}
	for _, secret := range s.Secrets {
		s.places[secret.Namespace] = true
	}
	for _, k := range order {
		switch k.name {
		case kindCluster, "ManagedClusterSetBinding", kindPlacement, "AddOnDeploymentConfig", "ManifestWorkReplicaSet":
			err := each(ctx, s.Hub, k, func(u *unstructured.Unstructured) error {
				place := u.GetNamespace()
				if k.name == kindCluster {
					place = u.GetName()
				}
				s.places[place] = true
				return nil
			})
			if err != nil {
				return fleet.Explain("listing "+k.resource.Resource, s.Hub, err)
			}
		}
	}
	return s.w.line(s.result.Header)
}

// each calls do with the objects of a kind, in pages; a kind that is not served has none.
func each(ctx context.Context, c *fleet.Cluster, k kind, do func(*unstructured.Unstructured) error) error {
	for u, err := range typed.All(ctx, c.Client.Resource(k.resource), metav1.ListOptions{Limit: pageSize}) {
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := do(u); err != nil {
			return err
		}
	}
	return nil
}

// list writes the objects of a kind. Secrets are read one by one.
func (s *saver) list(ctx context.Context, k kind) error {
	if k.name != kindSecret {
		return each(ctx, s.Hub, k, func(u *unstructured.Unstructured) error { return s.save(k, u) })
	}
	for _, secret := range s.Secrets {
		u, err := s.Hub.Client.Resource(k.resource).Namespace(secret.Namespace).Get(ctx, secret.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if t, _, _ := unstructured.NestedString(u.Object, "type"); strings.HasPrefix(t, "kubernetes.io/service-account-token") {
			return fleet.Misuse("secret "+secret.String()+" cannot be saved", "it holds the token of a service account, which no other API server takes", nil)
		}
		if err := s.save(k, u); err != nil {
			return err
		}
	}
	return nil
}

// save writes one object if it belongs into the backup.
func (s *saver) save(k kind, u *unstructured.Unstructured) error {
	if !s.wanted(k, u) {
		return nil
	}
	if u.GetDeletionTimestamp() != nil {
		s.result.Deleted = append(s.result.Deleted, fleet.Describe(u))
		return nil
	}
	switch k.name {
	case kindNamespace:
		delete(u.Object, "spec")
	case kindCluster, kindPlacement:
		unhold(u)
	case kindWork:
		s.result.Secret += secretsOf(u)
	case kindAddOn, kindManagementAddOn:
		s.noteForeign(u)
	}
	if !k.status {
		delete(u.Object, "status")
	}
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp", "selfLink"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	return s.w.object(u)
}

// wanted reports whether an object belongs into the backup: of namespaces and rights, only what
// the hub's users need.
func (s *saver) wanted(k kind, u *unstructured.Unstructured) bool {
	switch k.name {
	case kindNamespace:
		return s.places[u.GetName()]
	case kindClusterRole, kindRole:
		if foreignRight(u) || !s.here(u) || !aboutFleet(u) {
			return false
		}
		s.roles[u.GetNamespace()+"/"+u.GetName()] = true
	case kindClusterBinding, kindRoleBinding:
		return !foreignRight(u) && s.here(u) && s.binds(u)
	}
	return true
}

// here reports whether an object is in a namespace of the backup, or in none.
func (s *saver) here(u *unstructured.Unstructured) bool {
	return u.GetNamespace() == "" || s.places[u.GetNamespace()]
}

// reserved begins the names of roles that hubs make.
const reserved = "open-cluster-management:"

// foreignRight reports whether the hub, an owner or Kubernetes makes the object.
func foreignRight(u *unstructured.Unstructured) bool {
	return strings.HasPrefix(u.GetName(), reserved) || strings.HasPrefix(u.GetName(), "system:") || len(u.GetOwnerReferences()) > 0 ||
		u.GetLabels()[operatorv1.LabelCreatedByClusterManager] != "" || u.GetLabels()["kubernetes.io/bootstrapping"] != ""
}

// aboutFleet reports whether a role has rules about the API of a hub.
func aboutFleet(u *unstructured.Unstructured) bool {
	rules, _, _ := unstructured.NestedSlice(u.Object, "rules")
	return slices.ContainsFunc(rules, func(rule any) bool {
		r, _ := rule.(map[string]any)
		groups, _, _ := unstructured.NestedStringSlice(r, "apiGroups")
		return slices.ContainsFunc(groups, func(g string) bool { return strings.HasSuffix(g, "open-cluster-management.io") })
	})
}

// binds reports whether a binding grants a role of the backup or of the hub, or in a namespace one
// of the usual roles.
func (s *saver) binds(u *unstructured.Unstructured) bool {
	role, _, _ := unstructured.NestedStringMap(u.Object, "roleRef")
	if role["kind"] == kindRole {
		return s.roles[u.GetNamespace()+"/"+role["name"]]
	}
	usual := u.GetNamespace() != "" && slices.Contains([]string{"admin", "edit", "view"}, role["name"])
	return usual || s.roles["/"+role["name"]] || strings.HasPrefix(role["name"], reserved)
}

// secretsOf returns 1 if there is a Secret among the manifests of a work.
func secretsOf(work *unstructured.Unstructured) int {
	manifests, _, _ := unstructured.NestedSlice(work.Object, "spec", "workload", "manifests")
	for _, m := range manifests {
		content, _ := m.(map[string]any)
		if u := (unstructured.Unstructured{Object: content}); manifest.IsSecret(u.GetAPIVersion(), u.GetKind()) {
			return 1
		}
	}
	return 0
}

// noteForeign notes the kinds of configurations that a backup does not have.
func (s *saver) noteForeign(addOn *unstructured.Unstructured) {
	for _, path := range [][]string{{"spec", "configs"}, {"spec", "supportedConfigs"}} {
		list, _, _ := unstructured.NestedSlice(addOn.Object, path...)
		for _, item := range list {
			config, _ := item.(map[string]any)
			group, _, _ := unstructured.NestedString(config, "group")
			resource, _, _ := unstructured.NestedString(config, "resource")
			known := slices.ContainsFunc(order, func(k kind) bool { return k.resource.Group == group && k.resource.Resource == resource })
			if name := strings.TrimSuffix(resource+"."+group, "."); !known && resource != "" {
				s.foreign[name] = true
			}
		}
	}
}
