// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
)

// scene is an agent whose time stands still unless a test waits.
type scene struct {
	client *fake.FakeDynamicClient
	o      Options
	logged []string
}

func newScene(objects ...runtime.Object) *scene {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resource: "LeaseList"}, objects...)
	return &scene{client: client, o: Options{
		Client: client, Namespace: "default", AddOn: "hello", Clock: clock.RealClock{}, Random: func() float64 { return 1 },
	}}
}

// run starts it, for the time of the test.
func (s *scene) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(logr.NewContext(t.Context(), funcr.New(func(_, args string) { s.logged = append(s.logged, args) }, funcr.Options{})))
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, s.o) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	synctest.Wait()
}

// after waits, and returns the spec of the lease then.
func (s *scene) after(t *testing.T, d time.Duration) map[string]any {
	t.Helper()
	<-time.After(d)
	synctest.Wait()
	live, err := s.client.Resource(resource).Namespace("default").Get(t.Context(), "hello", metav1.GetOptions{})
	require.NoError(t, err)
	return live.Object["spec"].(map[string]any)
}

// now is the current time in the format of the lease.
func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00") }

func TestTheLeaseIsRenewedEveryMinuteAndAQuarter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene()
		began := now()
		s.run(t)
		want := map[string]any{"leaseDurationSeconds": int64(60), "renewTime": began}
		require.Equal(t, want, s.after(t, 0), "it is there at once, and has no holder")
		require.Equal(t, want, s.after(t, 74*time.Second))
		later := s.after(t, time.Second)
		require.Equal(t, now(), later["renewTime"])
		require.Empty(t, s.logged)
	})
}

func TestALeaseThatIsThereKeepsWhatOthersPutIntoIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
			"metadata": map[string]any{"namespace": "default", "name": "hello", "labels": map[string]any{"a": "b"}},
		}}
		s := newScene(there)
		s.run(t)
		require.Equal(t, now(), s.after(t, 0)["renewTime"])
		live, err := s.client.Resource(resource).Namespace("default").Get(t.Context(), "hello", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"a": "b"}, live.GetLabels())
	})
}

func TestAnAgentThatDoesNotWorkDoesNotRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene()
		var ill atomic.Bool
		s.o.Checks = []Check{func(context.Context) error { return nil }, func(ctx context.Context) error {
			if _, bounded := ctx.Deadline(); !bounded {
				return errors.New("a check has no end")
			}
			if ill.Load() {
				return errors.New("the disk is full")
			}
			return nil
		}}
		s.run(t)
		began := s.after(t, 0)["renewTime"]
		ill.Store(true)
		require.Equal(t, began, s.after(t, 75*time.Second)["renewTime"])
		require.Len(t, s.logged, 1)
		require.Contains(t, s.logged[0], "the disk is full")
		ill.Store(false)
		later := s.after(t, 75*time.Second)
		require.Equal(t, now(), later["renewTime"])
	})
}

func TestARenewalThatFailsIsTriedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene()
		var failing atomic.Bool
		failing.Store(true)
		s.client.PrependReactor("patch", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return failing.Load(), nil, errors.New("no connection")
		})
		s.run(t)
		failing.Store(false)
		require.NotEmpty(t, s.after(t, 12500*time.Millisecond)["renewTime"])
		require.Len(t, s.logged, 1)
		require.Contains(t, s.logged[0], "no connection")
	})
}

func TestOptionsThatAreMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"client": {func(o *Options) { o.Client = nil }, "client: must be set"},
		"namespace": {
			func(o *Options) { o.Namespace = "" },
			"namespace: must be set; use the one that the agent is installed in",
		},
		"add-on": {func(o *Options) { o.AddOn = "" }, "add-on: must be set; use the name of the ManagedClusterAddOn"},
		"random": {func(o *Options) { o.Random = nil }, "clock and random: must be set"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			tc.change(&s.o)
			require.ErrorContains(t, Run(t.Context(), s.o), tc.want)
		})
	}
}

func TestAliveAsksTheManagedCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		answers map[string]int
		want    string
	}{
		"it lives":            {map[string]int{"/livez": 200}, ""},
		"it is old":           {map[string]int{"/livez": 404, "/healthz": 200}, ""},
		"it is ill":           {map[string]int{"/livez": 500}, "answers 500"},
		"it is old and ill":   {map[string]int{"/livez": 404, "/healthz": 500}, "answers 500"},
		"it may not be asked": {map[string]int{"/livez": 403}, "answers 403"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(tc.answers[r.URL.Path]) }))
			defer server.Close()
			alive, err := Alive(&rest.Config{Host: server.URL})
			require.NoError(t, err)
			if err = alive(t.Context()); tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}
