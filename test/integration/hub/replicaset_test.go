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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var (
	placements  = clusterv1beta1.GroupVersion.WithResource("placements")
	decisions   = clusterv1beta1.GroupVersion.WithResource("placementdecisions")
	replicaSets = workv1alpha1.GroupVersion.WithResource("manifestworkreplicasets")
)

// fan is a namespace with a frozen placement whose decisions the test writes, and the
// namespaces of clusters that no other test uses.
type fan struct {
	*scene
	namespace string
	clusters  []string
}

func newFan(t *testing.T, name string, clusters int) *fan {
	t.Helper()
	f := &fan{scene: sharedHub(t), namespace: name}
	for i := range clusters {
		f.clusters = append(f.clusters, fmt.Sprintf("%s-%d", name, i))
	}
	for _, ns := range append([]string{name}, f.clusters...) {
		_, err := f.kube.CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return f
}

// place creates a placement if necessary, and makes it select these clusters.
func (f *fan) place(t *testing.T, name string, selected ...string) {
	t.Helper()
	ctx := context.Background()
	p := decoded(t, fmt.Sprintf(`{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement",
		"metadata":{"name":%q,"annotations":{"cluster.open-cluster-management.io/experimental-scheduling-disable":"true"}},"spec":{}}`, name))
	if _, err := f.dyn.Resource(placements).Namespace(f.namespace).Create(ctx, p, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	d := decoded(t, fmt.Sprintf(`{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"PlacementDecision","metadata":{"name":"%s-1","labels":{
		"cluster.open-cluster-management.io/placement":%q,"cluster.open-cluster-management.io/decision-group-index":"0",
		"cluster.open-cluster-management.io/decision-group-name":""}}}`, name, name))
	if _, err := f.dyn.Resource(decisions).Namespace(f.namespace).Create(ctx, d, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	list := []map[string]string{}
	for _, c := range selected {
		list = append(list, map[string]string{"clusterName": c, "reason": ""})
	}
	body, err := json.Marshal(map[string]any{"status": map[string]any{"decisions": list}})
	require.NoError(t, err)
	_, err = f.dyn.Resource(decisions).Namespace(f.namespace).Patch(ctx, name+"-1", types.MergePatchType, body, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

func decoded(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(text)))
	return u
}

// deploy applies a replica set of one ConfigMap with this value.
func (f *fan) deploy(t *testing.T, name, value string, rest string, refs ...string) {
	t.Helper()
	for i, ref := range refs {
		if !strings.HasPrefix(ref, "{") {
			refs[i] = fmt.Sprintf(`{"name":%q}`, ref)
		}
	}
	u := decoded(t, fmt.Sprintf(`{"apiVersion":"work.open-cluster-management.io/v1alpha1","kind":"ManifestWorkReplicaSet",
		"metadata":{"name":%q,"labels":{"team":"a"}},
		"spec":{"placementRefs":[%s]%s,"manifestWorkTemplate":{"workload":{"manifests":[
		{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings"},"data":{"value":%q}}]}}}}`,
		name, strings.Join(refs, ","), rest, value))
	reached(t, func() error {
		_, err := f.dyn.Resource(replicaSets).Namespace(f.namespace).Apply(context.Background(), name, u, metav1.ApplyOptions{FieldManager: "test", Force: true})
		return err
	})
}

// delivered lists the works of a replica set as "cluster=value", sorted.
func (f *fan) delivered(t *testing.T, name string) []string {
	t.Helper()
	var out []string
	for _, w := range f.works(t, name) {
		manifests, _, err := unstructured.NestedSlice(w.Object, "spec", "workload", "manifests")
		require.NoError(t, err)
		value, _, err := unstructured.NestedString(manifests[0].(map[string]any), "data", "value")
		require.NoError(t, err)
		out = append(out, w.GetNamespace()+"="+value)
	}
	slices.Sort(out)
	return out
}

func (f *fan) works(t *testing.T, name string) []unstructured.Unstructured {
	t.Helper()
	list, err := f.dyn.Resource(works).List(context.Background(), metav1.ListOptions{
		LabelSelector: workv1alpha1.LabelManifestWorkReplicaSet + "=" + f.namespace + "." + name,
	})
	require.NoError(t, err)
	return list.Items
}

func (f *fan) get(t *testing.T, name string) (*workv1alpha1.ManifestWorkReplicaSet, error) {
	t.Helper()
	return typed.Get[workv1alpha1.ManifestWorkReplicaSet](context.Background(), f.dyn, replicaSets, f.namespace, name)
}

func (f *fan) awaitDelivered(t *testing.T, name string, want ...string) {
	t.Helper()
	defer f.logs(t)
	var last []string
	soon(t, func() bool {
		last = f.delivered(t, name)
		return slices.Equal(want, last)
	}, "wanted %v, last %v", want, &last)
}

// awaitCondition waits for a condition of the current generation.
func (f *fan) awaitCondition(t *testing.T, name, kind, want string) *workv1alpha1.ManifestWorkReplicaSet {
	t.Helper()
	defer f.logs(t)
	last := &workv1alpha1.ManifestWorkReplicaSet{}
	soon(t, func() bool {
		got, err := typed.Get[workv1alpha1.ManifestWorkReplicaSet](context.Background(), f.dyn, replicaSets, f.namespace, name)
		if err != nil {
			return false
		}
		*last = *got
		c := apimeta.FindStatusCondition(last.Status.Conditions, kind)
		return c != nil && c.ObservedGeneration == last.Generation && string(c.Status)+" "+c.Reason == want
	}, "%s is not %s: %+v", kind, want, last)
	return last
}

// succeed reports the work as applied and available, as the agent of a cluster does.
func (f *fan) succeed(t *testing.T, name, cluster string) {
	t.Helper()
	for _, w := range f.works(t, name) {
		if w.GetNamespace() != cluster {
			continue
		}
		stamp := time.Now().UTC().Format(time.RFC3339)
		var conditions []map[string]any
		for _, kind := range []string{"Applied", "Available"} {
			conditions = append(conditions, map[string]any{
				"type": kind, "status": "True", "reason": "Test", "message": "m", "lastTransitionTime": stamp, "observedGeneration": w.GetGeneration(),
			})
		}
		body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
		require.NoError(t, err)
		_, err = f.dyn.Resource(works).Namespace(cluster).Patch(context.Background(), w.GetName(), types.MergePatchType, body, metav1.PatchOptions{}, "status")
		require.NoError(t, err)
	}
}

func TestAReplicaSetFollowsItsPlacements(t *testing.T) {
	f := newFan(t, "fan", 3)
	c := f.clusters
	f.deploy(t, "web", "one", "", "p", "q")
	f.awaitCondition(t, "web", workv1alpha1.ConditionPlacementVerified, "False "+workv1alpha1.ReasonPlacementDecisionNotFound)
	f.place(t, "p", c[0], c[1])
	f.awaitDelivered(t, "web", c[0]+"=one", c[1]+"=one")
	f.place(t, "q", c[1], c[2])
	f.awaitDelivered(t, "web", c[0]+"=one", c[1]+"=one", c[2]+"=one")
	for _, w := range f.works(t, "web") {
		require.Equal(t, "a", w.GetLabels()["team"])
		want := map[string]string{c[0]: "p", c[1]: "p", c[2]: "q"}[w.GetNamespace()]
		require.Equal(t, want, w.GetLabels()[workv1alpha1.LabelPlacementName], "one work for a cluster of two placements, by the first")
	}
	f.awaitCondition(t, "web", workv1alpha1.ConditionPlacementVerified, "True "+workv1alpha1.ReasonAsExpected)
	for _, cluster := range c {
		f.succeed(t, "web", cluster)
	}
	set := f.awaitCondition(t, "web", workv1alpha1.ConditionPlacementRolledOut, "True "+workv1alpha1.ReasonComplete)
	require.Equal(t, 3, set.Status.Summary.Available)
	f.awaitCondition(t, "web", workv1alpha1.ConditionManifestworkApplied, "True "+workv1alpha1.ReasonAsExpected)

	f.deploy(t, "web", "two", "", "p", "q")
	f.awaitDelivered(t, "web", c[0]+"=two", c[1]+"=two", c[2]+"=two")
	f.place(t, "p", c[1])
	f.awaitDelivered(t, "web", c[1]+"=two", c[2]+"=two")

	require.NoError(t, f.dyn.Resource(placements).Namespace(f.namespace).Delete(context.Background(), "q", metav1.DeleteOptions{}))
	f.awaitCondition(t, "web", workv1alpha1.ConditionPlacementVerified, "False "+workv1alpha1.ReasonPlacementDecisionNotFound)
	require.Equal(t, []string{c[1] + "=two", c[2] + "=two"}, f.delivered(t, "web"), "works of a deleted placement stay")
	f.deploy(t, "web", "two", "", "p")
	f.awaitDelivered(t, "web", c[1]+"=two")
}

func TestWorksOfAPlacementThatLosesAllClustersAreHeld(t *testing.T) {
	f := newFan(t, "lost", 2)
	ctx := context.Background()
	both := []string{f.clusters[0] + "=one", f.clusters[1] + "=one"}
	f.place(t, "p", f.clusters...)
	f.deploy(t, "web", "one", "", "p")
	f.awaitDelivered(t, "web", both...)
	f.place(t, "p")
	held := f.awaitCondition(t, "web", workv1alpha1.ConditionRemovalHeld, "True "+workv1alpha1.ReasonPlacementShrank)
	require.Equal(t, both, f.delivered(t, "web"))
	f.place(t, "p", f.clusters...)
	released := func() bool {
		set, err := f.get(t, "web")
		return err == nil && apimeta.FindStatusCondition(set.Status.Conditions, workv1alpha1.ConditionRemovalHeld) == nil
	}
	soon(t, released, "it is held although the clusters are selected again")
	require.Equal(t, both, f.delivered(t, "web"))

	f.place(t, "p")
	f.awaitCondition(t, "web", workv1alpha1.ConditionRemovalHeld, "True "+workv1alpha1.ReasonPlacementShrank)
	confirm := fmt.Sprintf(`{"metadata":{"annotations":{%q:"2"}}}`, workv1alpha1.AnnotationConfirmRemoval)
	require.Contains(t, apimeta.FindStatusCondition(held.Status.Conditions, workv1alpha1.ConditionRemovalHeld).Message, workv1alpha1.AnnotationConfirmRemoval+"=2")
	_, err := f.dyn.Resource(replicaSets).Namespace(f.namespace).Patch(ctx, "web", types.MergePatchType, []byte(confirm), metav1.PatchOptions{})
	require.NoError(t, err)
	f.awaitDelivered(t, "web")
	soon(t, func() bool {
		set, err := f.get(t, "web")
		return err == nil && released() && set.Annotations[workv1alpha1.AnnotationConfirmRemoval] == ""
	}, "the confirmation stays and would hold for another time")
}

func TestAWorkOfAReplicaSetThatSomebodyChangesIsPutRight(t *testing.T) {
	f := newFan(t, "repaired", 1)
	f.place(t, "p", f.clusters[0])
	f.deploy(t, "web", "one", "", "p")
	f.awaitDelivered(t, "web", f.clusters[0]+"=one")
	work := f.works(t, "web")[0]
	other := `{"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap",
		"metadata":{"namespace":"default","name":"settings"},"data":{"value":"theirs"}}]}}}`
	_, err := f.dyn.Resource(works).Namespace(work.GetNamespace()).Patch(
		context.Background(), work.GetName(), types.MergePatchType, []byte(other), metav1.PatchOptions{},
	)
	require.NoError(t, err)
	f.awaitDelivered(t, "web", f.clusters[0]+"=one")
	require.NoError(t, f.dyn.Resource(works).Namespace(work.GetNamespace()).Delete(context.Background(), work.GetName(), metav1.DeleteOptions{}))
	f.awaitDelivered(t, "web", f.clusters[0]+"=one")

	beside := `{"metadata":{"annotations":{"theirs":"kept"}},"spec":{"deleteOption":{"propagationPolicy":"Orphan"}}}`
	_, err = f.dyn.Resource(works).Namespace(work.GetNamespace()).Patch(
		context.Background(), work.GetName(), types.MergePatchType, []byte(beside), metav1.PatchOptions{},
	)
	require.NoError(t, err)
	soon(t, func() bool {
		work = f.works(t, "web")[0]
		_, found, err := unstructured.NestedMap(work.Object, "spec", "deleteOption")
		return err == nil && !found
	}, "what the template does not hold is taken out of the spec")
	require.Equal(t, "kept", work.GetAnnotations()["theirs"], "annotations of others stay")
}

func TestAProgressiveReplicaSetGoesFromClusterToCluster(t *testing.T) {
	f := newFan(t, "steps", 3)
	c := f.clusters
	f.place(t, "p", c...)
	const slow = `{"name":"p","rolloutStrategy":{"type":"Progressive","progressive":{"maxConcurrency":1}}}`
	f.deploy(t, "web", "one", "", slow)
	for i := range c {
		var want []string
		for _, cluster := range c[:i+1] {
			want = append(want, cluster+"=one")
		}
		f.awaitDelivered(t, "web", want...)
		f.awaitCondition(t, "web", workv1alpha1.ConditionPlacementRolledOut, "False "+workv1alpha1.ReasonProgressing)
		f.succeed(t, "web", c[i])
	}
	set := f.awaitCondition(t, "web", workv1alpha1.ConditionPlacementRolledOut, "True "+workv1alpha1.ReasonComplete)
	done, selected := set.Status.RolledOut()
	require.Equal(t, []int{3, 3}, []int{done, selected})
	require.Zero(t, set.Status.Summary.DesiredTotal+set.Status.Summary.Updated, "the wire leaves them unset")
}

func TestADeletedReplicaSetTakesItsWorksAlong(t *testing.T) {
	f := newFan(t, "cascade", 2)
	ctx := context.Background()
	f.place(t, "p", f.clusters...)
	for _, policy := range []string{"Background", "Foreground"} {
		name := strings.ToLower(policy)
		f.deploy(t, name, "one", fmt.Sprintf(`,"cascadeDeletionPolicy":%q`, policy), "p")
		f.awaitDelivered(t, name, f.clusters[0]+"=one", f.clusters[1]+"=one")
		held := f.works(t, name)[0]
		api := f.dyn.Resource(works).Namespace(held.GetNamespace())
		_, err := api.Patch(ctx, held.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/held"]}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		require.NoError(t, f.dyn.Resource(replicaSets).Namespace(f.namespace).Delete(ctx, name, metav1.DeleteOptions{}))
		gone := func() bool {
			_, err := f.dyn.Resource(replicaSets).Namespace(f.namespace).Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}
		f.awaitDelivered(t, name, held.GetNamespace()+"=one")
		if policy == "Foreground" {
			require.False(t, gone(), "it waits for its works")
		} else {
			soon(t, gone)
		}
		_, err = api.Patch(ctx, held.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		soon(t, gone)
		f.awaitDelivered(t, name)
	}
}

// An API server deletes a set that it has read without finalizer, though the loop has put one on it by then.
func TestAReplicaSetThatIsDeletedWhenItIsTakenLeavesNothing(t *testing.T) {
	f := newFan(t, "vanished", 1)
	ctx := context.Background()
	f.place(t, "p", f.clusters[0])
	api := f.dyn.Resource(replicaSets).Namespace(f.namespace)
	for i := range 5 {
		name := fmt.Sprintf("web-%d", i)
		f.deploy(t, name, "one", "", "p")
		f.awaitDelivered(t, name, f.clusters[0]+"=one")
		_, err := api.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		require.NoError(t, api.Delete(ctx, name, metav1.DeleteOptions{}))
		f.awaitDelivered(t, name)
	}
}

func TestAReplicaSetWithATooLongNameSaysSo(t *testing.T) {
	f := newFan(t, "named", 1)
	f.place(t, "p", f.clusters[0])
	name := strings.Repeat("w", 60)
	f.deploy(t, name, "one", "", "p")
	f.awaitCondition(t, name, workv1alpha1.ConditionManifestworkApplied, "False "+workv1alpha1.ReasonInvalidManifestWorkName)
	require.NoError(t, f.dyn.Resource(replicaSets).Namespace(f.namespace).Delete(context.Background(), name, metav1.DeleteOptions{}))
	soon(t, func() bool {
		_, err := f.dyn.Resource(replicaSets).Namespace(f.namespace).Get(context.Background(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
