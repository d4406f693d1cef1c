// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// refusals answers requests to one side with 429 and records the times.
type refusals struct {
	side string
	mu   sync.Mutex
	over bool
	// at holds the times of refused requests, by method and path.
	at map[string][]time.Time
}

func (r *refusals) answer(side string, request *http.Request) *http.Response {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over || side != r.side || strings.HasSuffix(request.URL.Path, "/events") {
		return nil
	}
	key := request.Method + " " + request.URL.Path
	r.at[key] = append(r.at[key], time.Now())
	return &http.Response{
		Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Retry-After": {"1"}}, Body: io.NopCloser(strings.NewReader("busy")), Request: request,
	}
}

// most returns how often the most refused request was refused.
func (r *refusals) most() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := 0
	for _, times := range r.at {
		out = max(out, len(times))
	}
	return out
}

func (r *refusals) end() map[string][]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	return r.at
}

func TestAnAPIServerThatIsBusyIsAskedNoSoonerThanItSays(t *testing.T) {
	t.Parallel()
	for _, side := range []string{"hub", "spoke"} {
		t.Run(side, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.start()
			s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")})
			s.ready("web")
			r := &refusals{side: side, at: map[string][]time.Time{}}
			s.sent.Answer(r.answer)
			s.update("web", s.manifests(configMap("one", "a", "2"), configMap("two", "a", "1")))
			s.patch(configMaps, "two", `{"data":{"a":"theirs"}}`)
			s.eventually(func() bool { return r.most() >= 3 }, "it does not try again")
			refused := r.end()
			s.ready("web")
			s.eventually(func() bool { return s.data("one", "a") == "2" && s.data("two", "a") == "1" }, "it does not go on")
			for request, times := range refused {
				for i := 1; i < len(times); i++ {
					require.GreaterOrEqual(t, times[i].Sub(times[i-1]), 990*millisecond, "%s was sent again before its time", request)
				}
			}
		})
	}
}

// A busy API server that asks for a longer pause than a request may last gets that pause,
// and the status reports it immediately. Works whose objects it accepts continue.
func TestAnAPIServerThatIsBusyForLongIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.start()
	var mu sync.Mutex
	var asked []time.Time
	s.sent.Answer(func(side string, r *http.Request) *http.Response {
		if side != "spoke" || !strings.HasSuffix(r.URL.Path, "/configmaps/busy") {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if asked = append(asked, time.Now()); len(asked) > 1 {
			return nil
		}
		return &http.Response{
			Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Retry-After": {"17"}}, Body: io.NopCloser(strings.NewReader("busy")), Request: r,
		}
	})
	s.create("busy", []string{configMap("busy", "a", "1"), configMap("beside", "a", "1")})
	s.soonManifestSays(
		"busy", 0, "Applied",
		"False AppliedManifestFailed Failed to apply manifest: reading configmaps "+s.namespace+"/busy: "+
			"the API server is busy (code 429) and asks to come back after 17 s",
	)
	require.Equal(t, "1", s.data("beside", "a"))
	s.create("other", []string{configMap("other", "a", "1")})
	s.ready("other")
	s.ready("busy")
	mu.Lock()
	defer mu.Unlock()
	require.GreaterOrEqual(t, asked[1].Sub(asked[0]), 16*time.Second, "it was asked before its time")
}

// TestAPeerThatVanishesIsNoticed silently loses all connections of the agent to one of
// its API servers, as when a node or a router between them goes down. Nothing arrives on
// them any more; new ones work. client-go gives such a connection up after the times of
// half a minute and a quarter of a minute.
func TestAPeerThatVanishesIsNoticed(t *testing.T) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "2")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "2")
	for side, change := range map[string]func(*scene){
		"hub":   func(s *scene) { s.update("web", s.manifests(configMap("one", "a", "2"))) },
		"spoke": func(s *scene) { s.patch(configMaps, "one", `{"data":{"a":"2","theirs":"1"}}`) },
	} {
		t.Run(side, func(t *testing.T) {
			s := newScene(t)
			gate := harness.Shared(t, side).Gate(t)
			through := func(cfg *rest.Config) *rest.Config {
				cfg = gate.Through(cfg)
				// Use separate connections, with the times above.
				cfg.Dial = (&net.Dialer{}).DialContext
				return cfg
			}
			want := "1"
			if side == "hub" {
				s.config.Hub, want = through(s.config.Hub), "2"
			} else {
				s.config.Spoke = through(s.config.Spoke)
			}
			s.start()
			s.create("web", []string{configMap("one", "a", "1")})
			s.ready("web")
			s.rests()
			gate.Lose()
			change(s)
			s.eventually(func() bool { return s.data("one", "a") == want && len(s.sent.Take()) > 0 }, "it is not carried out")
			s.ready("web")
		})
	}
}

// listing reports whether a request is one with which the agent learns which works exist.
func listing(side string, r *http.Request) bool {
	return side == "hub" && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/manifestworks")
}

func unlisted(side string, r *http.Request) error {
	if listing(side, r) {
		return faults.ErrCut
	}
	return nil
}

// TestAStaleCacheEvictsNothing makes the agent miss that a work came back: it receives no
// more events of works, and the grace period ends.
func TestAStaleCacheEvictsNothing(t *testing.T) {
	s := newScene(t)
	gate := harness.Shared(t, "hub").Gate(t)
	s.config.Grace = time.Hour
	s.config.Hub = gate.Through(s.config.Hub)
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	uid := s.get(configMaps, "one").GetUID()
	stop()
	s.forget("web")
	s.start()
	s.eventually(func() bool { return s.applied("web").Status.EvictionStartTime != nil }, "it is not missed")
	s.sent.Fail(unlisted)
	gate.Cut()
	gate.Heal() // closes the watch
	s.create("web", []string{configMap("one", "a", "1")})
	s.sent.Take()
	s.clock.forward(2 * time.Hour)
	s.poke("web")
	asked := func(r string) bool { return strings.HasSuffix(r, "/manifestworks/web") }
	s.eventually(func() bool {
		for _, r := range s.sent.Take() {
			if asked(r) {
				return true
			}
		}
		return false
	}, "the hub is not asked")
	s.never(func() bool { a := s.applied("web"); return a == nil || a.DeletionTimestamp != nil }, second, "it is evicted by what the cache says")
	s.sent.Fail(nil)
	s.ready("web")
	s.eventually(func() bool { return s.applied("web").Status.EvictionStartTime == nil }, "it is still missed")
	require.Equal(t, uid, s.get(configMaps, "one").GetUID())
}

// unwatchable returns a function that ends the watch which the agent has of its records, and lets it
// begin no other. It is called before the agent starts.
func (s *scene) unwatchable() (unwatch func()) {
	s.t.Helper()
	gate := harness.Shared(s.t, "spoke").Gate(s.t)
	s.config.Spoke = gate.Through(s.config.Spoke)
	return func() {
		s.sent.Fail(func(_ string, r *http.Request) error {
			if strings.HasSuffix(r.URL.Path, "/appliedmanifestworks") && r.Method == http.MethodGet {
				return faults.ErrCut
			}
			return nil
		})
		gate.Cut()
		gate.Heal() // closes the watch
	}
}

// TestADeletionEndsWhileRecordsAreNotSeen deletes a work while the agent's watch of its records
// is gone and cannot begin again: what the agent did itself, it knows from the answers.
func TestADeletionEndsWhileRecordsAreNotSeen(t *testing.T) {
	s := newScene(t)
	unwatch := s.unwatchable()
	s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	unwatch()
	s.remove("web")
	s.gone("web")
	require.Nil(t, s.get(configMaps, "one"))
}

// TestNothingIsTakenOffARecordThatWasNotSeen has another process of the agent, which is about to
// end, record an object of a work in between: the agent learns of that record when it creates it.
func TestNothingIsTakenOffARecordThatWasNotSeen(t *testing.T) {
	s := newScene(t)
	unwatch := s.unwatchable()
	s.start()
	s.create("other", []string{configMap("other", "a", "1")})
	s.ready("other")
	unwatch()
	name := s.config.HubHash + "-web"
	apply(t, s.spoke, applieds, "", fmt.Sprintf(`{"apiVersion":%q,"kind":"AppliedManifestWork","metadata":{"name":%q,"finalizers":[%q]},
		"spec":{"hubHash":%q,"agentID":%q,"manifestWorkName":"web"}}`,
		workv1.GroupVersion, name, workv1.FinalizerAppliedManifestWork, s.config.HubHash, s.config.AgentID))
	apply(t, s.spoke, configMaps, s.namespace, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two","ownerReferences":[
		{"apiVersion":%q,"kind":"AppliedManifestWork","name":%q,"uid":%q}]}}`, workv1.GroupVersion, name, s.applied("web").UID))
	_, err := s.spoke.Resource(applieds).Patch(t.Context(), name, types.MergePatchType, fmt.Appendf(nil,
		`{"status":{"appliedResources":[{"version":"v1","resource":"configmaps","namespace":%q,"name":"two","uid":%q}]}}`,
		s.namespace, s.get(configMaps, "two").GetUID()), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	s.eventually(func() bool { return s.get(configMaps, "two") == nil }, "what the work does not declare is left")
}

// TestAWorkThatIsDeletedWhenItIsTakenLeavesNothing deletes a work after the agent has put its
// finalizer on it, as an API server does that has read it before: nothing waits for the grace.
func TestAWorkThatIsDeletedWhenItIsTakenLeavesNothing(t *testing.T) {
	s := newScene(t)
	api := s.hub.Resource(works).Namespace(s.cluster)
	var failed atomic.Pointer[error]
	once := sync.OnceFunc(func() {
		_, err := api.Patch(t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		err = cmp.Or(err, api.Delete(t.Context(), "web", metav1.DeleteOptions{}))
		failed.Store(&err)
	})
	s.sent.Answer(func(side string, r *http.Request) *http.Response {
		if side == "hub" && strings.HasSuffix(r.URL.Path, "/manifestworks/web/status") {
			once()
		}
		return nil
	})
	s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.eventually(func() bool { return failed.Load() != nil }, "it is not reported")
	require.NoError(t, *failed.Load())
	s.eventually(func() bool { return s.applied("web") == nil && s.get(configMaps, "one") == nil }, "its record or its object is left")
}

// TestAWorkThatIsHeldAgainKeepsItsGrace takes the finalizer off a work that is long applied, and
// then the work from the hub.
func TestAWorkThatIsHeldAgainKeepsItsGrace(t *testing.T) {
	s := newScene(t)
	s.config.Grace = time.Hour
	s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	_, err := s.hub.Resource(works).Namespace(s.cluster).Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.eventually(func() bool { return len(s.work("web").Finalizers) > 0 }, "it is not held again")
	s.sent.Fail(func(side string, r *http.Request) error {
		if side == "hub" && r.Method == http.MethodPatch {
			return faults.ErrCut
		}
		return nil
	})
	s.forget("web")
	s.eventually(func() bool { return s.applied("web").Status.EvictionStartTime != nil }, "it is not missed")
	s.never(func() bool { return s.data("one", "a") != "1" }, 2*second, "its object goes without a grace")
}

// TestNothingIsMissedBeforeTheHubWasHeard starts an agent that cannot list the works on
// its hub.
func TestNothingIsMissedBeforeTheHubWasHeard(t *testing.T) {
	s := newScene(t)
	s.config.Grace = second
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	uid := s.get(configMaps, "one").GetUID()
	stop()
	s.sent.Fail(unlisted)
	s.sent.Take()
	s.start()
	tries := 0
	s.eventually(func() bool {
		for _, r := range s.sent.Take() {
			if strings.HasPrefix(r, "hub GET") && strings.HasSuffix(r, "/manifestworks") {
				tries++
			}
		}
		return tries >= 3
	}, "the hub is not asked")
	s.never(func() bool { a := s.applied("web"); return a == nil || a.Status.EvictionStartTime != nil }, 2*second, "a work that was not visible counts as missing")
	s.sent.Fail(nil)
	s.update("web", s.manifests(configMap("one", "a", "2")))
	s.ready("web")
	require.Equal(t, uid, s.get(configMaps, "one").GetUID())
}

// TestAnObjectThatIsWrittenMeanwhileIsLookedAtAgain has another writer change the object
// between each read of the agent and its write, three times in a row.
func TestAnObjectThatIsWrittenMeanwhileIsLookedAtAgain(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	s.rests()
	object := "/api/v1/namespaces/" + s.namespace + "/configmaps/one"
	var left atomic.Int64
	left.Store(3)
	s.sent.Fail(func(side string, r *http.Request) error {
		n := left.Load()
		if side != "spoke" || r.Method != http.MethodPatch || r.URL.Path != object || n == 0 {
			return nil
		}
		left.Store(n - 1)
		_, err := s.spoke.Resource(configMaps).Namespace(s.namespace).Patch(r.Context(), "one", types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{"theirs":"%d"}}}`, n), metav1.PatchOptions{FieldManager: "somebody"})
		return err
	})
	s.update("web", s.manifests(configMap("one", "a", "2")))
	s.ready("web")
	require.Equal(t, "2", s.data("one", "a"))
	require.Equal(t, "1", s.get(configMaps, "one").GetAnnotations()["theirs"])
	tries, reports := 0, 0
	for _, r := range s.sent.Take() {
		switch {
		case r == "spoke PATCH "+object:
			tries++
		case strings.HasPrefix(r, "hub PATCH ") && strings.HasSuffix(r, "/status"):
			reports++
		}
	}
	require.Equal(t, 4, tries)
	require.Equal(t, 1, reports, "the hub hears of the end alone")
}
