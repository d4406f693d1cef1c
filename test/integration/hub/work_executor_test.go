// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// editWorks is the right to write works and sets of works, but not to act as any account.
var editWorks = rbacv1.PolicyRule{
	APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks", "manifestworkreplicasets"},
	Verbs: []string{"get", "create", "update", "patch", "delete"},
}

// actAs is the right to act as an account.
func actAs(account string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{workv1.GroupName}, Resources: []string{"manifestworks"}, Verbs: []string{"execute-as"},
		ResourceNames: []string{"system:serviceaccount:" + account},
	}
}

const aMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"%s"}}`

// rawWork returns a work, with more fields in its spec.
func rawWork(namespace, name, manifests, more string) string {
	return fmt.Sprintf(`{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork",
		"metadata":{"namespace":%q,"name":%q},"spec":{"workload":{"manifests":[%s]}%s}}`,
		namespace, name, manifests, more)
}

// runBy returns the field for an executor, given as namespace/name.
func runBy(account string) string {
	namespace, name, _ := strings.Cut(account, "/")
	return fmt.Sprintf(`,"executor":{"subject":{"type":"ServiceAccount","serviceAccount":{"namespace":%q,"name":%q}}}`, namespace, name)
}

// change merges a patch into a work.
func change(as dynamic.Interface, namespace, name, body string) error {
	_, err := as.Resource(works).Namespace(namespace).Patch(context.Background(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	return err
}

func TestInvalidWorksAreRefusedOnTheHub(t *testing.T) {
	f := newFan(t, "invalid-works", 0)
	one, ns := fmt.Sprintf(aMap, "one"), f.namespace
	for name, tc := range map[string]struct{ manifests, more, words string }{
		"no manifests": {"", "", "manifests should not be empty"},
		"no name": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default"}}`,
			"",
			"name must be set in manifest",
		},
		"a generated name": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a-"}}`,
			"",
			"generateName must not be set in manifest",
		},
		"the same twice": {
			one + "," + one,
			"",
			"duplicate manifest for resource default/one with resource type v1.ConfigMap",
		},
		"too large": {
			strings.TrimSuffix(one, "}") + `,"data":{"a":"` + strings.Repeat("x", 512_000) + `"}}`,
			"",
			"bytes which exceeds the 512000 limit",
		},
		"no account": {
			one,
			`,"executor":{"subject":{"type":"ServiceAccount"}}`,
			"executor service account can not be nil",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := raw(f.dyn, works, rawWork(ns, "wrong", tc.manifests, tc.more))
			require.True(t, apierrors.IsBadRequest(err), "%v", err)
			require.ErrorContains(t, err, tc.words)
		})
	}
	require.NoError(t, raw(f.dyn, works, rawWork(ns, "fine", one, "")))
	_, err := f.dyn.Resource(works).Namespace(ns).Patch(
		t.Context(), "fine", types.MergePatchType, []byte(`{"spec":{"workload":{"manifests":[]}}}`),
		metav1.PatchOptions{},
	)
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	require.ErrorContains(t, err, "manifests should not be empty")
}

func TestOnlyWhoMayActAsAnExecutorChangesWhatItDoes(t *testing.T) {
	f := newFan(t, "acting", 0)
	one, two := fmt.Sprintf(aMap, "one"), fmt.Sprintf(aMap, "two")
	with := f.user(t, "acting-with", editWorks, actAs("apps:robot"))
	without := f.user(t, "acting-without", editWorks, actAs("apps:other"))
	change := func(as dynamic.Interface, body string) error { return change(as, f.namespace, "run", body) }
	refused := func(err error, executor string) {
		t.Helper()
		require.True(t, apierrors.IsBadRequest(err), "%v", err)
		require.ErrorContains(t, err, "cannot manipulate the Manifestwork with executor "+executor+" in namespace "+f.namespace)
	}
	settled(t, func() error { return raw(with, works, rawWork(f.namespace, "run", one, runBy("apps/robot"))) })
	settled(t, func() error { return raw(without, works, rawWork(f.namespace, "own", one, runBy("apps/other"))) })
	refused(raw(without, works, rawWork(f.namespace, "stolen", one, runBy("apps/robot"))), "apps/robot")
	for _, body := range []string{
		`{"spec":{"workload":{"manifests":[` + two + `]}}}`,
		`{"spec":{"deleteOption":{"propagationPolicy":"Orphan"}}}`,
		`{"spec":{"manifestConfigs":[{"resourceIdentifier":{"resource":"configmaps","name":"one"}}]}}`,
		`{"spec":{"executor":{"subject":{"serviceAccount":{"name":"other"}}},"workload":{"manifests":[` + two + `]}}}`,
		`{"spec":{"executor":null}}`,
	} {
		refused(change(without, body), "apps/robot")
	}
	require.NoError(t, change(without, `{"metadata":{"labels":{"a":"b"},"finalizers":["example.com/held"]}}`), "what an executor does is left alone")
	require.NoError(t, change(with, `{"spec":{"workload":{"manifests":[`+two+`]}}}`))
	// A work that is being deleted is no exception, but its finalizers can be removed.
	require.NoError(t, f.dyn.Resource(works).Namespace(f.namespace).Delete(t.Context(), "run", metav1.DeleteOptions{}))
	refused(change(without, `{"spec":{"deleteOption":{"propagationPolicy":"Orphan"}}}`), "apps/robot")
	require.NoError(t, change(without, `{"metadata":{"finalizers":null}}`))
}

// rawSet returns a replica set whose template is that of rawWork.
func rawSet(namespace, name, refs, manifests, more string) string {
	return fmt.Sprintf(`{"apiVersion":"work.open-cluster-management.io/v1alpha1","kind":"ManifestWorkReplicaSet","metadata":{"namespace":%q,"name":%q},
		"spec":{"placementRefs":[%s],"manifestWorkTemplate":{"workload":{"manifests":[%s]}%s}}}`, namespace, name, refs, manifests, more)
}

func TestSetsOfWorksAreCheckedOnTheHub(t *testing.T) {
	f := newFan(t, "checked-sets", 2)
	f.place(t, "p", f.clusters...)
	one := fmt.Sprintf(aMap, "one")
	const p = `{"name":"p"}`
	rollout := func(block string) string {
		return `{"name":"p","rolloutStrategy":{"type":"Progressive","progressive":{` + block + `}}}`
	}
	for words, set := range map[string]string{
		"manifests should not be empty":                                               rawSet(f.namespace, "wrong", p, "", ""),
		"duplicate manifest for resource default/one with resource type v1.ConfigMap": rawSet(f.namespace, "wrong", p, one+","+one, ""),
		"spec.placementRefs[1].rolloutStrategy.progressive.maxFailures": rawSet(
			f.namespace, "wrong", p+","+rollout(`"maxFailures":-1`), one, "",
		),
		"spec.placementRefs[0].rolloutStrategy.progressive.maxConcurrency": rawSet(
			f.namespace, "wrong", rollout(`"maxConcurrency":"7"`), one, "",
		),
		"spec.placementRefs[0].rolloutStrategy.progressive.progressDeadline: \"5mm\"": rawSet(
			f.namespace, "wrong", rollout(`"progressDeadline":"5mm"`), one, "",
		),
		"spec.placementRefs[0].rolloutStrategy.progressive.minSuccessTime": rawSet(
			f.namespace, "wrong", rollout(`"minSuccessTime":"-5m"`), one, "",
		),
		"cannot manipulate the Manifestwork with executor apps/robot in namespace " + f.namespace: "",
	} {
		t.Run(words, func(t *testing.T) {
			as := f.dyn
			if set == "" {
				as, set = f.user(t, "checked-sets-without", editWorks), rawSet(f.namespace, "wrong", p, one, runBy("apps/robot"))
				settled(t, func() error {
					if err := raw(as, replicaSets, set); !apierrors.IsForbidden(err) {
						return nil
					}
					return fmt.Errorf("rights are not known yet")
				})
			}
			err := raw(as, replicaSets, set)
			require.True(t, apierrors.IsBadRequest(err), "%v", err)
			require.ErrorContains(t, err, words)
		})
	}
	// A right in the namespace of the set applies to all its clusters: the hub creates
	// the works, without another check.
	with := f.user(t, "checked-sets-with", editWorks, actAs("apps:robot"))
	settled(t, func() error { return raw(with, replicaSets, rawSet(f.namespace, "run", p, one, runBy("apps/robot"))) })
	soon(t, func() bool { return len(f.works(t, "run")) == 2 })
	for _, w := range f.works(t, "run") {
		name, _, err := unstructured.NestedString(w.Object, "spec", "executor", "subject", "serviceAccount", "name")
		require.NoError(t, err)
		require.Equal(t, "robot", name)
	}
	_, err := with.Resource(replicaSets).Namespace(f.namespace).Patch(t.Context(), "run", types.MergePatchType,
		[]byte(`{"spec":{"manifestWorkTemplate":{"workload":{"manifests":[`+fmt.Sprintf(aMap, "two")+`]}}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	soon(t, func() bool {
		for _, w := range f.works(t, "run") {
			if !strings.Contains(fmt.Sprint(w.Object["spec"]), "name:two") {
				return false
			}
		}
		return true
	}, "the hub carries the change out")
}

// warnings collects the warnings of an API server.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader records a warning.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func TestWhatCannotWorkIsWarnedOfOnTheHub(t *testing.T) {
	f := newFan(t, "warned", 0)
	w := &warnings{}
	cfg := rest.CopyConfig(f.Config)
	cfg.WarningHandler, cfg.WarningHandlerWithContext = w, nil
	dyn, err := dynamic.NewForConfig(cfg)
	require.NoError(t, err)
	require.NoError(t, raw(dyn, works, rawWork(f.namespace, "odd", fmt.Sprintf(aMap, "one"),
		`,"manifestConfigs":[{"resourceIdentifier":{"resource":"configmaps","name":"one"},
			"feedbackRules":[{"type":"JSONPaths","jsonPaths":[{"name":"a","path":".data[?("}]}],
			"conditionRules":[{"condition":"Applied","type":"CEL","celExpressions":["true"]},{"condition":"Ready","type":"CEL","celExpressions":["object."]}],
			"updateStrategy":{"type":"ServerSideApply","serverSideApply":{"ignoreFields":[{"jqPathExpressions":[".data |"]}]}}}]`)))
	require.NoError(t, raw(dyn, replicaSets, rawSet(f.namespace, strings.Repeat("s", 60), `{"name":"none"}`, fmt.Sprintf(aMap, "one"), "")))
	w.mu.Lock()
	defer w.mu.Unlock()
	require.Len(t, w.texts, 5)
	for i, want := range []string{
		"spec.manifestConfigs[0].feedbackRules[0].jsonPaths[0].path", `spec.manifestConfigs[0].conditionRules[0].condition: "Applied" is made by the agent itself`,
		"spec.manifestConfigs[0].conditionRules[1].celExpressions[0]", "spec.manifestConfigs[0].updateStrategy.serverSideApply.ignoreFields[0].jqPathExpressions[0]",
		"use a shorter name",
	} {
		require.Contains(t, w.texts[i], want)
	}
}
