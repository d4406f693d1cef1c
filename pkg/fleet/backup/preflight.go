// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
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
	switch missing, gates := r.missing(kinds); {
	case len(gates) > 0:
		return fleet.Refuse(r.Hub.String()+" lacks kinds of the backup", strings.Join(missing, ", "), OpenGates.On(r.Hub, "gates", strings.Join(gates, ",")))
	case len(missing) > 0:
		return fleet.Refuse(r.Hub.String()+" lacks kinds of the backup", strings.Join(missing, ", "), InitFirst.On(r.Hub))
	}
	return nil
}

// missing returns the kinds of the backup that the hub does not serve, and the gates with which it
// would.
func (r *restorer) missing(kinds *fleet.Served) (missing, gates []string) {
	for _, k := range order {
		if _, ok := kinds.Of(k.resource.GroupVersion().WithKind(k.name)); ok || r.file.footer.Counts[k.name] == 0 {
			continue
		}
		missing = append(missing, k.resource.GroupResource().String())
		if k.name == kindAccount || k.name == kindPermission {
			gates = append(gates, k.name+"=true") // the gate has the name of its kind
		}
	}
	return missing, gates
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

// plan counts what would be created, and what is there. In a dry run on the server, the server is
// asked what it thinks of each object.
func (r *restorer) plan(ctx context.Context) error {
	there, last := map[string]bool{}, kind{}
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(writers)
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
		missing := !there[u.GetNamespace()+"/"+u.GetName()]
		r.count(missing)
		if r.DryRun == fleet.DryRunServer && (missing || k.name == kindClusterManager) {
			group.Go(func() error { return r.try(inner, k, u) })
		}
		return nil
	})
	if waited := group.Wait(); err == nil {
		err = waited
	}
	if err != nil || len(r.refused) == 0 {
		return err
	}
	slices.Sort(r.refused)
	cause := strings.Join(r.refused[:min(maxRefused, len(r.refused))], "; ")
	if more := len(r.refused) - maxRefused; more > 0 {
		cause += fmt.Sprintf("; and %d more", more)
	}
	return fleet.Refuse(fmt.Sprintf("%s would refuse %s of the backup", r.Hub, fleet.Many(len(r.refused), "object")), cause,
		fleet.Advice("remove what the server names, or leave these objects out of the next backup"))
}

// maxRefused is how many refused objects an error names, and maxReason how much of what the server
// says about each, in bytes.
const maxRefused, maxReason = 5, 300

// try asks the server what it thinks of an object. An object in a namespace that the restore
// creates cannot be checked before.
func (r *restorer) try(ctx context.Context, k kind, u *unstructured.Unstructured) (err error) {
	if k.name == kindClusterManager {
		_, err = r.settings(ctx, u)
	} else {
		r.prepare(k, u)
		_, err = r.Hub.Client.Resource(k.resource).Namespace(u.GetNamespace()).
			Create(ctx, u, metav1.CreateOptions{FieldManager: fleet.FieldManager, DryRun: []string{metav1.DryRunAll}})
	}
	if err == nil || apierrors.IsAlreadyExists(err) {
		return nil
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fleet.Explain("trying to restore "+fleet.Describe(u), r.Hub, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if apierrors.IsNotFound(err) {
		r.result.Unchecked++
		return nil
	}
	r.refused = append(r.refused, fleet.Describe(u)+": "+excerpt.Of(fleet.OneLine(status.Status().Message), maxReason))
	return nil
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
