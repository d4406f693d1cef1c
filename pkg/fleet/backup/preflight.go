// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// The states of a restore, as the hub records them.
const (
	stateBegun = "begun"
	stateDone  = "done"

	keyBackup = "backup"
	keyState  = "state"
)

// checkHub refuses a cluster that is no hub, one of an older version than the backup, and one that
// lacks kinds of the backup.
func (r *restorer) checkHub(ctx context.Context) error {
	d, err := hub.Deployment(ctx, r.Hub)
	if err != nil {
		return err
	}
	served, err := fleet.ServesHub(ctx, r.Hub)
	if err != nil {
		return fleet.Explain("looking for the hub on "+r.Hub.String(), r.Hub, err)
	}
	if d == nil || !served {
		return fleet.Refuse(r.Hub.String()+" is not a hub", "a backup is restored on a hub that has just been made", InitFirst.On(r.Hub))
	}
	was, errWas := version.ParseSemantic(r.file.header.Hub)
	is, errIs := version.ParseSemantic(hub.TagOf(hub.ImageOf(d)))
	if errWas == nil && errIs == nil && is.LessThan(was) {
		return fleet.Refuse("the hub is older than the backup", "it runs version "+is.String()+", and the backup was made of version "+was.String(),
			UpgradeHub.On(r.Hub, "version", r.file.header.Hub))
	}
	kinds, err := r.Hub.Kinds()
	if err != nil {
		return err
	}
	var missing []string
	for _, k := range order {
		if _, ok := kinds.Of(k.resource.GroupVersion().WithKind(k.name)); !ok && r.file.footer.Counts[k.name] > 0 {
			missing = append(missing, k.resource.GroupResource().String())
		}
	}
	if len(missing) > 0 {
		return fleet.Refuse(r.Hub.String()+" lacks kinds of the backup", strings.Join(missing, ", "), InitFirst.On(r.Hub))
	}
	return nil
}

// checkEmpty refuses a hub that has objects.
func (r *restorer) checkEmpty(ctx context.Context) error {
	var found []string
	for _, k := range order {
		if !slices.Contains([]string{kindCluster, "ManagedClusterSetBinding", kindPlacement, kindAddOn, kindWork, kindManagementAddOn,
			"ManifestWorkReplicaSet"}, k.name) {
			continue
		}
		page, err := r.Hub.Client.Resource(k.resource).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil && !apierrors.IsNotFound(err) {
			return fleet.Explain("listing "+k.resource.Resource, r.Hub, err)
		}
		if err == nil && len(page.Items) > 0 {
			found = append(found, fleet.Describe(&page.Items[0]))
		}
	}
	if len(found) > 0 {
		return fleet.Refuse("the hub of "+r.Hub.String()+" is not empty", "it has "+strings.Join(found, ", "), CleanOrMerge.On(r.Hub))
	}
	return nil
}

// mark is the record of a restore on the hub.
func (r *restorer) mark(state string) *unstructured.Unstructured {
	out := fleet.Named(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, operatorv1.NamespaceOperator, operatorv1.ConfigMapRestore)
	out.SetLabels(map[string]string{operatorv1.LabelCreatedByClusterManager: operatorv1.DefaultClusterManagerName})
	out.Object["data"] = map[string]any{keyBackup: r.file.footer.SHA256, keyState: state}
	return out
}

// state returns how far this backup was restored; "" if it was not begun. It refuses to begin
// while the restore of another one is not finished.
func (r *restorer) state(ctx context.Context) (string, error) {
	live, err := write.Live(ctx, r.Hub, r.mark(""))
	if err != nil {
		return "", fleet.Explain("reading "+fleet.Describe(r.mark("")), r.Hub, err)
	}
	if live == nil {
		return "", nil
	}
	data, _, _ := unstructured.NestedStringMap(live.Object, "data")
	switch {
	case data[keyBackup] == r.file.footer.SHA256:
		return data[keyState], nil
	case data[keyState] == stateDone:
		return "", nil
	}
	return "", fleet.Refuse("the restore of another backup is not finished", "its checksum is "+data[keyBackup], FinishFirst.On(r.Hub))
}

// begin records that the restore has begun.
func (r *restorer) begin(ctx context.Context) error { return r.record(ctx, stateBegun) }

func (r *restorer) record(ctx context.Context, state string) error {
	_, err := write.One(ctx, r.run, r.Hub, r.mark(state))
	return fleet.Explain("recording the restore", r.Hub, err)
}

// plan counts what would be created, and what is there.
func (r *restorer) plan(ctx context.Context) error {
	there, last := map[string]bool{}, kind{}
	_, err := r.scan(func(u *unstructured.Unstructured) error {
		rank, _ := rankOf(u)
		k := order[rank]
		if k.name != last.name {
			last = k
			clear(there)
			err := each(ctx, r.Hub, k, func(u *unstructured.Unstructured) error {
				there[u.GetNamespace()+"/"+u.GetName()] = true
				return nil
			})
			if err != nil {
				return fleet.Explain("listing "+k.resource.Resource, r.Hub, err)
			}
			r.result.Kinds = append(r.result.Kinds, KindResult{Kind: k.name})
		}
		r.count(!there[u.GetNamespace()+"/"+u.GetName()])
		return nil
	})
	return err
}

// count counts an object of the current kind.
func (r *restorer) count(created bool) {
	at := &r.result.Kinds[len(r.result.Kinds)-1]
	if !created {
		at.Kept++
		return
	}
	at.Created++
	r.result.Action = fleet.Created
}
