// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/addonhealth"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/gc"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// collector is the loop gc, run next to the hub's own with the hub's token. change
// modifies its connection and thus what it sees.
func (s *scene) collector(t *testing.T, kinds []manager.Kind, change func(*rest.Config)) *manager.Manager {
	t.Helper()
	config := s.As(t, hub.Namespace, hub.Name)
	change(config)
	dyn, err := dynamic.NewForConfig(rest.CopyConfig(config))
	require.NoError(t, err)
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1.AddToScheme(scheme))
	require.NoError(t, addonhealth.AddToScheme(scheme))
	m, err := manager.New(manager.Options{Config: config, Scheme: scheme, Clock: clock.RealClock{}, Kinds: kinds})
	require.NoError(t, err)
	gc.Register(m, gc.Config{Client: dyn, Clock: clock.RealClock{}, Clean: true})
	return m
}

// runs runs loops until the test ends.
func runs(t *testing.T, m *manager.Manager) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- m.Run(t.Context()) }()
	t.Cleanup(func() { require.NoError(t, <-done) })
}

// TestWorksOfAClusterThatIsBackAreNotDeleted runs a loop whose cache, which is limited to
// clusters with a label, misses an existing cluster. The same happens for a moment when a
// cluster and its works are created again, and the works are seen first.
func TestWorksOfAClusterThatIsBackAreNotDeleted(t *testing.T) {
	s := sharedHub(t)
	s.register(t, "back", "a")
	require.NoError(t, patch(s.dyn, "back", `{"metadata":{"labels":{"seen":"yes"}}}`))
	seen, err := labels.Parse("seen=yes")
	require.NoError(t, err)
	m := s.collector(t, []manager.Kind{{Example: &clusterv1.ManagedCluster{}, Label: seen}}, func(*rest.Config) {})
	came, went := make(chan struct{}, 1), make(chan struct{}, 1)
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(_, current *clusterv1.ManagedCluster) {
		switch {
		case current == nil:
			went <- struct{}{}
		case current.Name == "back":
			select {
			case came <- struct{}{}:
			default:
			}
		}
	})
	runs(t, m)

	<-came
	s.work(t, "back", "w", -1)
	require.NoError(t, patch(s.dyn, "back", `{"metadata":{"labels":{"seen":null}}}`))
	<-went
	never(t, func() bool {
		going, _ := s.deleting(t, works, "back")
		return len(going) > 0
	}, 2*time.Second)
}

// late is a connection with one watch that delivers nothing while it is shut.
type late struct {
	next     http.RoundTripper
	resource string
	// object is the object whose reads and writes are counted and may be held.
	object string
	// lists counts the lists of one namespace; reads and patches count those of the
	// object, without its status.
	lists, reads, patches atomic.Int32
	// held makes a patch of the object wait until the channel is closed, and then fail.
	held chan struct{}
	mu   sync.Mutex
	flow chan struct{}
}

func (l *late) shut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flow = make(chan struct{})
}

func (l *late) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flow != nil {
		close(l.flow)
	}
	l.flow = nil
}

func (l *late) flowing() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.flow
}

// RoundTrip sends the request.
func (l *late) RoundTrip(r *http.Request) (*http.Response, error) {
	single := path.Base(path.Dir(r.URL.Path)) == l.resource && path.Base(r.URL.Path) == l.object
	if single && r.Method == http.MethodPatch && l.held != nil {
		l.patches.Add(1)
		<-l.held
		return nil, errors.New("the connection is lost")
	}
	answer, err := l.next.RoundTrip(r)
	switch {
	case err != nil:
	case r.Method == http.MethodGet && single:
		l.reads.Add(1)
	case path.Base(r.URL.Path) != l.resource:
	case r.URL.Query().Get("watch") != "":
		answer.Body = &lateBody{answer.Body, l}
	case strings.Contains(r.URL.Path, "/namespaces/"):
		l.lists.Add(1)
	}
	return answer, err
}

type lateBody struct {
	io.ReadCloser
	line *late
}

// Read holds back data that has arrived.
func (b *lateBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if flow := b.line.flowing(); flow != nil {
		<-flow
	}
	return n, err
}

// TestWorksOfTheNextClusterAreNotDeletedWithTheOneBefore creates a work for the next
// cluster of a name as soon as the one before is gone, which the loop learns late. The
// hub's own loop removes the cluster's finalizer; the one of the test knows that nothing
// is left, cannot write that, and so reconciles again when the work exists.
func TestWorksOfTheNextClusterAreNotDeletedWithTheOneBefore(t *testing.T) {
	for name, unseen := range map[string]bool{"replaced": false, "replaced-unseen": true} {
		t.Run(name, func(t *testing.T) { worksOfTheNext(t, name, unseen) })
	}
}

// worksOfTheNext does it for one cluster; with unseen, the loop learns late of the works
// as well. The test has a finalizer on the cluster: otherwise the cluster might be gone
// before the loop of the test has looked at it.
func worksOfTheNext(t *testing.T, name string, unseen bool) {
	s := sharedHub(t)
	s.register(t, name, "a")
	_, err := s.dyn.Resource(clusters).Patch(t.Context(), name, types.JSONPatchType,
		[]byte(`[{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/test"}]`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.work(t, name, "held", -1)
	line := &late{resource: clusters.Resource, object: name, held: make(chan struct{})}
	ofWorks := &late{resource: works.Resource}
	m := s.collector(t, nil, func(c *rest.Config) {
		c.Wrap(func(next http.RoundTripper) http.RoundTripper { ofWorks.next = next; return ofWorks })
		c.Wrap(func(next http.RoundTripper) http.RoundTripper { line.next = next; return line })
	})
	var going, gone, with, without, next atomic.Bool
	manager.Watch(m, &clusterv1.ManagedCluster{}, func(old, current *clusterv1.ManagedCluster) {
		switch {
		case current == nil:
			gone.Store(gone.Load() || old.Name == name)
		case current.Name == name && current.DeletionTimestamp != nil:
			going.Store(true)
		}
	})
	manager.Watch(m, manager.Metadata(gc.ManifestWorkKind), func(old, current *metav1.PartialObjectMetadata) {
		with.Store(with.Load() || current != nil && current.Namespace == name && current.Name == "held")
		without.Store(without.Load() || current == nil && old.Namespace == name)
		next.Store(next.Load() || current != nil && current.Namespace == name && current.Name == "next")
	})
	runs(t, m)
	require.NoError(t, s.dyn.Resource(clusters).Delete(t.Context(), name, metav1.DeleteOptions{}))
	soon(t, going.Load, "the loop does not see that the cluster goes")
	soon(t, with.Load, "the loop does not see the work")
	s.await(t, name, "waits for its work", remains("1 manifestworks are left, 1 of them wait"))
	t.Cleanup(line.open)
	t.Cleanup(ofWorks.open)
	release := sync.OnceFunc(func() { close(line.held) })
	t.Cleanup(release)
	line.shut()
	s.letGo(t, works, name, "held")
	soon(t, without.Load, "the loop does not see that the work is gone")
	soon(t, func() bool { return line.patches.Load() > 0 }, "the loop does not let the cluster go")
	s.await(t, name, "is left to the test", func(mc *clusterv1.ManagedCluster) bool {
		return slices.Equal(mc.Finalizers, []string{"example.com/test"})
	})
	s.letGo(t, clusters, "", name)
	s.await(t, name, "is gone", func(mc *clusterv1.ManagedCluster) bool { return mc == nil })

	deleted := func() bool {
		going, _ := s.deleting(t, works, name)
		return len(going) > 0
	}
	if unseen {
		ofWorks.shut()
	}
	before := line.reads.Load()
	s.work(t, name, "next", -1)
	if !unseen {
		soon(t, next.Load, "the loop does not see the work")
	}
	release()
	soon(t, func() bool { return deleted() || line.reads.Load() > before }, "the loop does not check that the cluster exists")
	require.False(t, deleted(), "the loop takes the cluster for one that is there")
	line.open()
	soon(t, gone.Load, "the loop does not see that the cluster is gone")
	ofWorks.open()
	soon(t, next.Load, "the loop does not see the work")
	never(t, deleted, 2*time.Second, "the cluster had left nothing")
}

// TestTheOrderOfDeletionIsNotThatInWhichWatchesTell lets a hub see the deletion of a
// cluster before it sees the add-on that was created earlier.
func TestTheOrderOfDeletionIsNotThatInWhichWatchesTell(t *testing.T) {
	s := sharedHub(t)
	s.register(t, "unseen", "a")
	line := &late{resource: addons.Resource}
	m := s.collector(t, nil, func(c *rest.Config) {
		c.Wrap(func(next http.RoundTripper) http.RoundTripper { line.next = next; return line })
	})
	var work atomic.Bool
	manager.Watch(m, manager.Metadata(gc.ManifestWorkKind), func(_, current *metav1.PartialObjectMetadata) {
		if current != nil && current.Namespace == "unseen" {
			work.Store(true)
		}
	})
	var ready atomic.Bool
	m.AddTask(func(ctx context.Context) error { ready.Store(true); <-ctx.Done(); return nil })
	runs(t, m)
	soon(t, ready.Load, "the loop does not begin")
	t.Cleanup(line.open)
	line.shut()
	s.addon(t, "unseen", "addon", agentFinalizer)
	s.work(t, "unseen", "w", -1)
	soon(t, work.Load, "the work is not seen")
	before := line.lists.Load()
	require.NoError(t, s.dyn.Resource(clusters).Delete(t.Context(), "unseen", metav1.DeleteOptions{}))
	soon(t, func() bool { return line.lists.Load() >= before+3 }, "the loop does not list what exists")
	going, _ := s.deleting(t, works, "unseen")
	require.Empty(t, going, "the add-on is first")

	line.open()
	s.await(t, "unseen", "waits for its add-on", remains("1 managedclusteraddons are left, 1 of them wait"))
	going, _ = s.deleting(t, works, "unseen")
	require.Empty(t, going, "the add-on is first")
	s.letGo(t, addons, "unseen", "addon")
	soon(t, func() bool {
		going, _ := s.deleting(t, works, "unseen")
		return len(going) == 1
	}, "the work goes after the add-on")
	s.letGo(t, works, "unseen", "w")
	s.await(t, "unseen", "is gone", func(mc *clusterv1.ManagedCluster) bool { return mc == nil })
}

// TestANamespaceThatSomebodyDeletesComesBack checks that a namespace is not removed while
// it has works. The binding for works holds the namespace until the last work is gone,
// and no longer.
func TestANamespaceThatSomebodyDeletesComesBack(t *testing.T) {
	s := sharedHub(t)
	s.register(t, "emptied", "a")
	s.work(t, "emptied", "w", -1)
	before, err := s.kube.CoreV1().Namespaces().Get(t.Context(), "emptied", metav1.GetOptions{})
	require.NoError(t, err)
	err = s.kube.CoreV1().Namespaces().Delete(t.Context(), "emptied", metav1.DeleteOptions{})
	require.ErrorContains(t, err, "it holds 1 works of cluster emptied")
	require.ErrorContains(t, err, "kubectl ocm cluster remove emptied")
	require.NoError(t, s.dyn.Resource(works).Namespace("emptied").Delete(t.Context(), "w", metav1.DeleteOptions{}))
	require.NoError(t, s.kube.CoreV1().Namespaces().Delete(t.Context(), "emptied", metav1.DeleteOptions{}), "what goes anyway is nothing to keep")
	s.await(t, "emptied", "reports its namespace", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionFalse, clusterv1.ReasonError))
	require.True(t, eventually(func() bool {
		going, _ := s.deleting(t, works, "emptied")
		return len(going) == 1
	}))
	require.True(t, s.hasBinding("emptied", ":work"), "the agent has to remove what the work applied")
	s.letGo(t, works, "emptied", "w")
	require.True(t, eventually(func() bool {
		ns, err := s.kube.CoreV1().Namespaces().Get(t.Context(), "emptied", metav1.GetOptions{})
		return err == nil && ns.UID != before.UID && s.hasBinding("emptied", ":work") && s.hasBinding("emptied", ":registration")
	}))
	s.await(t, "emptied", "is accepted again", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionTrue, clusterv1.ReasonHubClusterAdminAccepted))
}
