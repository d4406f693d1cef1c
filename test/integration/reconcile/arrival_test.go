// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// outcomes records what a collection reports about its requests.
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

// at returns the n-th outcome, counted from zero.
func (o *outcomes) at(n int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all[n]
}

// attempts counts the requests of a client, and calls a function before the
// second list.
type attempts struct {
	next          http.RoundTripper
	lists, rounds atomic.Int32
	second        func()
}

// RoundTrip counts the request and sends it. A reflector starts each round with the
// request for a stream of all objects, and lists if that is refused.
func (a *attempts) RoundTrip(r *http.Request) (*http.Response, error) {
	switch q := r.URL.Query(); {
	case q.Get("sendInitialEvents") != "":
		a.rounds.Add(1)
	case q.Get("watch") == "" && a.lists.Add(1) == 2:
		a.second()
	}
	return a.next.RoundTrip(r)
}

// TestACollectionIsReadAsSoonAsTheRightToArrives grants the right between the first list,
// which is refused, and the second. A second list within the reflector's first round
// shows that the collection does not wait for its back-off of 0.8 s and more.
func TestACollectionIsReadAsSoonAsTheRightToArrives(t *testing.T) {
	s := newScene(t)
	config := harness.Shared(t, "hub").As(t, s.namespace, "reader")
	a := &attempts{second: func() { s.letRead(t, "reader") }}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { a.next = next; return a })
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	c := watch.New(watch.Options[string]{Client: client, Resource: configMaps, Namespace: s.namespace, Keep: value})
	o := &outcomes{first: make(chan struct{})}
	c.OnOutcome(o.add)
	run(t, c)
	<-o.first
	require.ErrorContains(t, o.at(0), "is forbidden")
	require.NoError(t, c.WaitSynced(t.Context()))
	require.NoError(t, c.Err())
	require.EqualValues(t, 1, a.rounds.Load())
	require.EqualValues(t, 2, a.lists.Load())
}

// starting is the connection to an API server that is away for the first request, and
// does not know the rights of the caller before the third.
type starting struct {
	attempts
	// paged is true for a server that does not stream lists.
	paged    bool
	requests atomic.Int32
	allow    func()
}

// RoundTrip sends all requests but the first.
func (a *starting) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.paged && r.URL.Query().Get("sendInitialEvents") != "" {
		a.rounds.Add(1)
		return &http.Response{StatusCode: http.StatusUnprocessableEntity, Body: http.NoBody, Request: r}, nil
	}
	switch a.requests.Add(1) {
	case 1:
		return nil, syscall.ECONNREFUSED
	case 3:
		a.allow()
	}
	return a.attempts.RoundTrip(r)
}

// TestACollectionOutlastsAnAPIServerThatStarts refuses one request after an outage, as an
// API server does that has not read its roles. It is sent again in the same round: if the
// refusal were taken for an answer, a list would follow the stream, or a third round.
func TestACollectionOutlastsAnAPIServerThatStarts(t *testing.T) {
	s := newScene(t)
	for account, tc := range map[string]struct {
		paged bool
		lists int32
	}{
		"streamed": {},
		"paged":    {paged: true, lists: 2},
	} {
		t.Run(account, func(t *testing.T) {
			config := harness.Shared(t, "hub").As(t, s.namespace, account)
			a := &starting{paged: tc.paged, allow: func() { s.letRead(t, account) }, attempts: attempts{second: func() {}}}
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { a.next = next; return a })
			client, err := dynamic.NewForConfig(config)
			require.NoError(t, err)
			c := watch.New(watch.Options[string]{Client: client, Resource: configMaps, Namespace: s.namespace, Keep: value})
			run(t, c)
			require.NoError(t, c.WaitSynced(t.Context()))
			require.Equal(t, []int32{2, tc.lists}, []int32{a.rounds.Load(), a.lists.Load()})
		})
	}
}

// letRead grants an account the right to read ConfigMaps, and waits until it takes
// effect.
func (s *scene) letRead(t *testing.T, account string) {
	t.Helper()
	user := "system:serviceaccount:" + s.namespace + ":" + account
	for gvr, u := range map[string]runtime.Object{
		"roles": &rbacv1.Role{
			TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"},
			ObjectMeta: metav1.ObjectMeta{Name: account},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list", "watch"}}},
		},
		"rolebindings": &rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{
			APIVersion: "rbac.authorization.k8s.io/v1",
			Kind:       "RoleBinding",
		}, ObjectMeta: metav1.ObjectMeta{Name: account},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}},
	} {
		made, err := typed.ToUnstructured(u)
		assert.NoError(t, err)
		_, err = s.client.Resource(schema.GroupVersionResource{
			Group:    rbacv1.GroupName,
			Version:  "v1",
			Resource: gvr,
		}).Namespace(s.namespace).Create(t.Context(), made, metav1.CreateOptions{})
		assert.NoError(t, err)
	}
	review := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
	assert.Eventually(t, func() bool {
		answer, err := s.client.Resource(review).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
			"spec": map[string]any{
				"user":               user,
				"resourceAttributes": map[string]any{"verb": "list", "resource": "configmaps", "namespace": s.namespace},
			}}}, metav1.CreateOptions{})
		allowed := err == nil
		if allowed {
			allowed, _, _ = unstructured.NestedBool(answer.Object, "status", "allowed")
		}
		return allowed
	}, patience, 10*time.Millisecond)
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
	require.Error(t, o.at(0), "a watch that is not answered is no success")
	gate.Heal()
	require.NoError(t, c.WaitSynced(t.Context()))
}

// TestABeatEndsThePauseOfACollection compares with the pauses without a beat: the minimum
// of a pause doubles with each failure, from 0.8 s on.
func TestABeatEndsThePauseOfACollection(t *testing.T) {
	s := newScene(t)
	config, line := faults.Count(harness.Shared(t, "hub").Config)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	pulse := &watch.Pulse{}
	c := watch.New(watch.Options[string]{Client: client, Resource: configMaps, Namespace: s.namespace, Keep: value, Pulse: pulse})
	healthy := watch.New(watch.Options[string]{Client: s.client, Resource: configMaps, Namespace: s.namespace, Keep: value, Pulse: pulse})
	calm := &outcomes{first: make(chan struct{})}
	healthy.OnOutcome(calm.add)
	line.Cut("")
	// The times at which rounds failed; a round may have more than one request.
	var mu sync.Mutex
	var rounds []time.Time
	c.OnOutcome(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); err != nil && (len(rounds) == 0 || now.Sub(rounds[len(rounds)-1]) > pauseBetweenRequests) {
			rounds = append(rounds, now)
		}
	})
	failed := func() []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(rounds)
	}
	stalls := harness.WatchStalls(t.Context())
	run(t, c)
	run(t, healthy)
	require.NoError(t, healthy.WaitSynced(t.Context()))
	require.Eventually(t, func() bool { return len(failed()) >= 4 }, patience, 10*time.Millisecond)
	require.Error(t, c.Err())
	before := calm.count()
	line.Fail(nil)
	require.Eventually(t, func() bool {
		pulse.Beat() // one during a request has no effect
		select {
		case <-c.Synced():
			return true
		default:
			return false
		}
	}, patience, 10*time.Millisecond)
	at := failed()
	last := len(at) - 1
	pause, waited := at[last].Sub(at[last-1]), time.Since(at[last])
	t.Logf("the last pause was %s, with a beat it was %s", pause.Round(time.Millisecond), waited.Round(time.Millisecond))
	require.True(t, waited < fourthPause || stalls.Excuse(at[last].Add(waited), waited), "it waits all the same")
	require.LessOrEqual(t, calm.count(), before+1, "a collection that is well does nothing at a beat")
}

// fourthPause is the minimum that a collection waits after four failures.
const fourthPause = 8 * 800 * time.Millisecond

// pauseBetweenRequests is shorter than the shortest pause between two rounds, which is
// 0.8 s, and longer than the time between the requests of one round.
const pauseBetweenRequests = 500 * time.Millisecond

func (o *outcomes) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.all)
}

// restored is the connection to an API server that may break a watch and then answer with an older
// state.
type restored struct {
	next http.RoundTripper
	// older makes its state older.
	older bool

	mu    sync.Mutex
	watch *breaking
	// streams, looks and resumed count the streams of all objects, the requests for one object, and
	// the watches that go on.
	streams, looks, resumed int
}

// RoundTrip counts the request and sends it.
func (r *restored) RoundTrip(req *http.Request) (*http.Response, error) {
	q := req.URL.Query()
	r.mu.Lock()
	switch {
	case q.Get("limit") == "1":
		r.looks++
		if r.older {
			r.mu.Unlock()
			body := `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Request: req,
				Header: http.Header{"Content-Type": {"application/json"}}}, nil
		}
	case q.Get("sendInitialEvents") != "":
		r.streams++
	case q.Get("watch") != "":
		r.resumed++
	}
	r.mu.Unlock()
	response, err := r.next.RoundTrip(req)
	if err == nil && q.Get("watch") != "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.watch = &breaking{ReadCloser: response.Body}
		response.Body = r.watch
	}
	return response, err
}

// requests returns the counts.
func (r *restored) requests() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return []int{r.streams, r.looks, r.resumed}
}

// cut breaks the watch.
func (r *restored) cut() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watch.broken.Store(true)
	return r.watch.ReadCloser.Close()
}

// breaking is a response that may end as if its server had died.
type breaking struct {
	io.ReadCloser
	broken atomic.Bool
}

func (b *breaking) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.broken.Load() {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestAWatchGoesOnOnlyWhereTheAPIServerDidNotGoBack breaks a watch. One that went on at a server
// with an older state would be accepted, and see nothing until that has caught up.
func TestAWatchGoesOnOnlyWhereTheAPIServerDidNotGoBack(t *testing.T) {
	s := newScene(t)
	for name, tc := range map[string]struct {
		older bool
		want  []int
	}{
		"the same state": {false, []int{1, 1, 1}},
		"an older state": {true, []int{2, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			account := strings.ReplaceAll(name, " ", "-")
			config := harness.Shared(t, "hub").As(t, s.namespace, account)
			s.letRead(t, account)
			r := &restored{older: tc.older}
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { r.next = next; return r })
			client, err := dynamic.NewForConfig(config)
			require.NoError(t, err)
			c := watch.New(watch.Options[string]{Client: client, Resource: configMaps, Namespace: s.namespace, Keep: value})
			run(t, c)
			require.NoError(t, c.WaitSynced(t.Context()))
			// A reflector lists after a watch that has seen nothing.
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"k": account}}}
			u.SetName(account)
			_, err = s.client.Resource(configMaps).Namespace(s.namespace).Create(t.Context(), u, metav1.CreateOptions{})
			require.NoError(t, err)
			require.True(t, harness.Until(patience, func() bool { return slices.Contains(c.List(), account) }))
			before := r.requests()
			require.Equal(t, []int{0, 0}, before[1:], "what has its list goes on without a look")
			require.NoError(t, r.cut())
			got := []int{}
			require.True(t, harness.Until(patience, func() bool {
				got = r.requests()
				got[0] -= before[0] - 1
				return slices.Equal(got, tc.want)
			}), "%v", got)
		})
	}
}
