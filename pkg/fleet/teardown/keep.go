// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

const (
	// keepPatience is how long agents may take to confirm; each confirmation restarts it.
	keepPatience = 30 * time.Second
	// leasePeriods is how many lease durations an agent may be silent before it counts as
	// away: the hub's own rule.
	leasePeriods = 5
	// undoTimeout bounds how long restoring the works may take.
	undoTimeout = 10 * time.Second
)

// ErrNotKept means that a live agent does not confirm that it keeps what works applied, so
// nothing was deleted; the error's text names the works.
var ErrNotKept = errors.New("it is not sure that what works applied stays")

// KeepOptions say whose works to make harmless.
type KeepOptions struct {
	// Namespace is that of one cluster on the hub; empty means all.
	Namespace string
	// Patience is how long agents may be silent before their leases are checked; zero means 30
	// s, a negative value waits until ctx ends.
	Patience time.Duration
	// Progress receives what Keep waits for; nil is silent.
	Progress func(string)
	// Clock decides whether leases are fresh; nil is the system's.
	Clock clock.PassiveClock
}

// KeptCluster is what stays on one managed cluster.
type KeptCluster struct {
	// Cluster is its name on the hub.
	Cluster string `json:"cluster"`
	// Works is the number of its works, Objects the number of objects that they had applied
	// according to their status.
	Works   int `json:"works"`
	Objects int `json:"objects"`
	// Confirmed is true when its agent has let go of all of them. Otherwise the agent was
	// away.
	Confirmed bool `json:"confirmed"`
}

// Keep makes the deletion of works harmless: each gets the delete option Orphan, loses its
// owners and is marked with workv1.AnnotationKept, so that neither an agent nor the garbage
// collector removes what it applied, and no loop of the hub reverts that. Keep waits until the
// agents have let go of the objects. After that, even an agent that misses the deletion, and
// later takes the work for lost, removes nothing.
//
// Agents that are away cannot confirm; the result has them as unconfirmed. When a live agent
// does not confirm, the error is ErrNotKept. Works that are already being deleted are left
// alone. It can be repeated after any failure.
func Keep(ctx context.Context, client dynamic.Interface, o KeepOptions) ([]KeptCluster, error) {
	k := newKeeper(client, o)
	err := k.run(ctx)
	if err != nil {
		// The caller's context may be what failed.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
		defer cancel()
		err = errors.Join(err, k.undo(ctx))
	}
	return k.result(), err
}

// run runs rounds until there is nothing left to wait for.
func (k *keeper) run(ctx context.Context) error {
	said := ""
	for {
		waiting, err := k.round(ctx)
		if waiting == "" || (err != nil && !isTransient(err)) {
			return err
		}
		if waiting != said && k.o.Progress != nil {
			k.o.Progress("waiting for " + waiting)
			said = waiting
		}
		if err := sleep(ctx, hubPoll); err != nil {
			return fmt.Errorf("waiting for %s: %w", waiting, err)
		}
	}
}

// keeper is one run of Keep.
type keeper struct {
	client dynamic.Interface
	o      KeepOptions
	// seen are the works so far, including those that are gone again.
	seen map[types.UID]*keptWork
	// away are the clusters whose agents are not waited for.
	away map[string]bool
	// waited is the time since the last confirmation, pending how many works are not
	// confirmed.
	waited  time.Duration
	pending int
}

type keptWork struct {
	cluster   string
	objects   int
	confirmed bool
}

func newKeeper(client dynamic.Interface, o KeepOptions) *keeper {
	o.Patience = cmp.Or(o.Patience, keepPatience)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &keeper{client: client, o: o, seen: map[types.UID]*keptWork{}, away: map[string]bool{}}
}

// round asks all works to leave their objects, and returns what it waits for. Rounds are one
// hubPoll apart.
func (k *keeper) round(ctx context.Context) (string, error) {
	const toTell = "works to be told to leave their objects"
	pending := map[string][]string{}
	for live, err := range objects(ctx, k.client.Resource(manifestWorks).Namespace(k.o.Namespace), "") {
		if err != nil {
			return toTell, fmt.Errorf("listing works: %w", err)
		}
		confirmed, err := k.keepWork(ctx, live)
		if err != nil {
			return toTell, err
		}
		if cluster := live.GetNamespace(); !confirmed && !k.away[cluster] {
			pending[cluster] = append(pending[cluster], live.GetName())
		}
	}
	number := 0
	for _, works := range pending {
		number += len(works)
	}
	if number == 0 {
		return "", nil
	}
	if k.waited += hubPoll; number != k.pending {
		k.pending, k.waited = number, 0
	}
	if k.o.Patience < 0 || k.waited < k.o.Patience {
		return describePending(pending), nil
	}
	return describePending(pending), k.giveUp(ctx, pending)
}

// giveUp stops waiting for clusters whose agents are away. It returns an error when others do
// not confirm.
func (k *keeper) giveUp(ctx context.Context, pending map[string][]string) error {
	alive := map[string][]string{}
	for cluster, works := range pending {
		fresh, err := k.hasFreshLease(ctx, cluster)
		if err != nil {
			return err
		}
		if fresh {
			alive[cluster] = works
		} else {
			k.away[cluster] = true
		}
	}
	k.waited = 0
	if len(alive) > 0 {
		return fmt.Errorf("%w: %s", ErrNotKept, describePending(alive))
	}
	return nil
}

// hasFreshLease reports whether the agent of a cluster has renewed its lease recently.
func (k *keeper) hasFreshLease(ctx context.Context, cluster string) (bool, error) {
	lease, err := get(ctx, k.client.Resource(leases).Namespace(cluster), clusterv1.LeaseName, "the lease of "+cluster)
	if err != nil || lease == nil {
		return false, err
	}
	text, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	renewed, _ := time.Parse(time.RFC3339Nano, text) // the zero time if it was never renewed
	period := time.Duration(cmp.Or(number(lease.Object, "spec", "leaseDurationSeconds"), 60)) * time.Second
	return k.o.Clock.Since(renewed) < leasePeriods*period, nil
}

// keepWork asks one work to leave its objects, and reports whether the agent has let go.
func (k *keeper) keepWork(ctx context.Context, live *unstructured.Unstructured) (bool, error) {
	work, err := typed.FromUnstructured[workv1.ManifestWork](live)
	if err != nil {
		return false, fmt.Errorf("reading manifestwork %s/%s: %w", live.GetNamespace(), live.GetName(), err)
	}
	if work.DeletionTimestamp != nil && !orphansAll(work) {
		return true, nil
	}
	known := k.seen[work.UID]
	if known == nil {
		known = &keptWork{cluster: work.Namespace}
		k.seen[work.UID] = known
	}
	known.objects, known.confirmed = AppliedObjects(work), hasLetGo(work)
	had, marked := work.Annotations[workv1.AnnotationKept]
	if marked && orphansAll(work) && len(work.OwnerReferences) == 0 {
		return known.confirmed, nil
	}
	known.confirmed = false
	if !marked {
		text, err := json.Marshal(former{work.Spec.DeleteOption, work.OwnerReferences})
		if err != nil {
			return false, fmt.Errorf("encoding the delete option: %w", err)
		}
		had = string(text)
	}
	return false, k.patch(ctx, work, map[string]any{
		"metadata": map[string]any{"ownerReferences": nil, "annotations": map[string]any{workv1.AnnotationKept: had}},
		"spec": map[string]any{"deleteOption": map[string]any{
			"propagationPolicy": workv1.DeletePropagationPolicyTypeOrphan, "selectivelyOrphans": nil,
		}},
	})
}

// former is the content of AnnotationKept.
type former struct {
	DeleteOption *workv1.DeleteOption    `json:"deleteOption"`
	Owners       []metav1.OwnerReference `json:"ownerReferences"`
}

// undo restores the works as they were before.
func (k *keeper) undo(ctx context.Context) error {
	for live, err := range objects(ctx, k.client.Resource(manifestWorks).Namespace(k.o.Namespace), "") {
		if err != nil {
			return fmt.Errorf("listing works: %w", err)
		}
		work, err := typed.FromUnstructured[workv1.ManifestWork](live)
		if err != nil || k.seen[work.UID] == nil || work.DeletionTimestamp != nil {
			continue // it was not changed here, or cannot be given back
		}
		var had former
		if err := json.Unmarshal([]byte(work.Annotations[workv1.AnnotationKept]), &had); err != nil {
			continue // others have taken it over
		}
		err = k.patch(ctx, work, map[string]any{
			"metadata": map[string]any{"ownerReferences": had.Owners, "annotations": map[string]any{workv1.AnnotationKept: nil}},
			"spec":     map[string]any{"deleteOption": replaceOption(had.DeleteOption)},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// replaceOption returns a merge patch that replaces the delete option.
func replaceOption(option *workv1.DeleteOption) any {
	if option == nil {
		return nil
	}
	return map[string]any{
		"propagationPolicy": option.PropagationPolicy, "selectivelyOrphans": option.SelectivelyOrphans,
		"ttlSecondsAfterFinished": option.TTLSecondsAfterFinished,
	}
}

// patch patches a work, if it is still the one that was seen.
func (k *keeper) patch(ctx context.Context, work *workv1.ManifestWork, change map[string]any) error {
	change["metadata"].(map[string]any)["uid"] = work.UID
	body, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("encoding the delete option: %w", err)
	}
	_, err = k.client.Resource(manifestWorks).Namespace(work.Namespace).Patch(ctx, work.Name, types.MergePatchType, body, metav1.PatchOptions{})
	return failed("changing the delete option of manifestwork "+work.Namespace+"/"+work.Name, notFoundIsNil(err))
}

// orphansAll reports whether a work leaves all its objects when it is deleted.
func orphansAll(work *workv1.ManifestWork) bool {
	return work.Spec.DeleteOption != nil && work.Spec.DeleteOption.PropagationPolicy == workv1.DeletePropagationPolicyTypeOrphan
}

// hasLetGo reports whether the agent no longer owns any of the objects: it never handled the
// work, or it has applied the work since the delete option was set. For a manifest that could
// not be applied this is unknown.
func hasLetGo(work *workv1.ManifestWork) bool {
	if !orphansAll(work) {
		return false
	}
	if !slices.Contains(work.Finalizers, workv1.FinalizerManifestWork) || work.DeletionTimestamp != nil {
		return true
	}
	applied := apimeta.FindStatusCondition(work.Status.Conditions, workv1.ConditionApplied)
	return applied != nil && applied.ObservedGeneration >= work.Generation && AppliedObjects(work) == len(work.Status.ResourceStatus.Manifests)
}

// AppliedObjects counts the objects that a work has on its cluster according to its status.
func AppliedObjects(work *workv1.ManifestWork) int {
	n := 0
	for _, m := range work.Status.ResourceStatus.Manifests {
		if apimeta.IsStatusConditionTrue(m.Conditions, workv1.ConditionApplied) {
			n++
		}
	}
	return n
}

// result summarizes the works by cluster.
func (k *keeper) result() []KeptCluster {
	sums := map[string]KeptCluster{}
	for _, work := range k.seen {
		sum, known := sums[work.cluster]
		sums[work.cluster] = KeptCluster{Cluster: work.cluster, Works: sum.Works + 1, Objects: sum.Objects + work.objects,
			Confirmed: work.confirmed && (sum.Confirmed || !known)}
	}
	out := []KeptCluster{}
	for _, cluster := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, sums[cluster])
	}
	return out
}

// describePending lists pending works with their clusters, up to a limit.
func describePending(pending map[string][]string) string {
	var out []string
	for _, cluster := range slices.Sorted(maps.Keys(pending)) {
		if len(out) == shown {
			out = append(out, fmt.Sprintf("and %d more clusters", len(pending)-shown))
			break
		}
		works := pending[cluster]
		text := strings.Join(works[:min(len(works), shown)], ", ")
		if len(works) > shown {
			text += fmt.Sprintf(" and %d more", len(works)-shown)
		}
		out = append(out, fmt.Sprintf("%s (%s)", cluster, text))
	}
	return "agents to let go of what works applied: " + strings.Join(out, ", ")
}
