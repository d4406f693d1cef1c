// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// outcomes keeps what a collection tells of its requests.
type outcomes struct {
	mu    sync.Mutex
	first chan struct{}
	all   []error
}

func (o *outcomes) add(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all = append(o.all, err); len(o.all) == 1 {
		close(o.first)
	}
}

func (o *outcomes) last() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.all) == 0 {
		return nil
	}
	return o.all[len(o.all)-1]
}

func TestACollectionIsReadAsSoonAsTheRightToArrives(t *testing.T) {
	s := newScene(t)
	client, err := dynamic.NewForConfig(harness.Shared(t, "hub").As(t, s.namespace, "reader"))
	require.NoError(t, err)
	c := watch.New(watch.Options[string]{Client: client, Resource: configMaps, Namespace: s.namespace, Keep: value})
	o := &outcomes{first: make(chan struct{})}
	c.OnOutcome(o.add)
	run(t, c)
	<-o.first
	require.ErrorContains(t, o.last(), "is forbidden")
	began := time.Now()
	for gvr, u := range map[string]runtime.Object{
		"roles": &rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}, ObjectMeta: metav1.ObjectMeta{Name: "reader"},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}}},
		"rolebindings": &rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: "reader"},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: s.namespace, Name: "reader"}}},
	} {
		made, err := typed.ToUnstructured(u)
		require.NoError(t, err)
		_, err = s.client.Resource(schema.GroupVersionResource{Group: rbacv1.GroupName, Version: "v1", Resource: gvr}).Namespace(s.namespace).Create(t.Context(), made, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, c.WaitSynced(t.Context()))
	took := time.Since(began)
	t.Logf("right given to list complete: %s", took.Round(time.Millisecond))
	require.Less(t, took, 700*time.Millisecond, "the reflector's own back-off begins with 800 ms")
	require.NoError(t, c.Err())
}

func TestACollectionWhoseWatchIsNotAnsweredSaysSo(t *testing.T) {
	s := newScene(t)
	cluster := harness.Shared(t, "hub")
	gate := cluster.Gate(t)
	through := gate.Through(cluster.Config)
	through.Timeout = time.Second
	client, err := dynamic.NewForConfig(through)
	require.NoError(t, err)
	c := watch.New(watch.Options[string]{Client: client, Resource: configMaps, Namespace: s.namespace, Keep: value})
	o := &outcomes{first: make(chan struct{})}
	c.OnOutcome(o.add)
	gate.Cut()
	run(t, c)
	<-o.first
	require.Error(t, o.last(), "a watch that is not answered is no success")
	gate.Heal()
	require.NoError(t, c.WaitSynced(t.Context()))
}
