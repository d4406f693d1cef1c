// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement/debug"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule/verdict"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// cluster is the part of an API server that authenticates and authorizes callers. A token
// is the name of its bearer; "nobody" is unknown, "broken" makes access reviews fail.
type cluster struct {
	mu    sync.Mutex
	may   map[string]bool // "user verb what"
	asked []authorizationv1.SubjectAccessReviewSpec
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/tokenreviews") {
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Status.Authenticated = review.Spec.Token != "nobody"
		review.Status.User = authenticationv1.UserInfo{
			Username: review.Spec.Token,
			UID:      "7",
			Groups:   []string{"g"},
			Extra:    map[string]authenticationv1.ExtraValue{"scope": {"s"}},
		}
		_ = json.NewEncoder(w).Encode(review)
		return
	}
	var review authorizationv1.SubjectAccessReview
	_ = json.NewDecoder(r.Body).Decode(&review)
	if review.Spec.User == "broken" {
		http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"out of order","code":500}`, http.StatusInternalServerError)
		return
	}
	c.asked = append(c.asked, review.Spec)
	what := ""
	if p := review.Spec.NonResourceAttributes; p != nil {
		what = p.Verb + " " + p.Path
	} else {
		a := review.Spec.ResourceAttributes
		what = fmt.Sprintf("%s %s/%s %s in %s", a.Verb, a.Resource, a.Version, a.Name, a.Namespace)
	}
	review.Status.Allowed = c.may[review.Spec.User+" "+what]
	review.Status.Reason = "by the rules"
	_ = json.NewEncoder(w).Encode(review)
}

// fleet knows one placement, shop/web.
type fleet struct {
	err      error
	explain  *clusterv1beta1.Placement
	clusters []schedule.ClusterReport
}

func (f *fleet) Placement(_ context.Context, key schedule.Key) (*clusterv1beta1.Placement, error) {
	if key.String() != "shop/web" || f.err != nil {
		return nil, f.err
	}
	return &clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}, nil
}

func (f *fleet) Explain(_ context.Context, p *clusterv1beta1.Placement) (verdict.Explanation, error) {
	f.explain = p
	return verdict.Explanation{
		Placement: verdict.Placement{Metadata: verdict.Metadata{Name: p.Name, Namespace: p.Namespace}},
		Selected:  []string{"c1"},
		Clusters:  f.clusters,
	}, f.err
}

// scene is a server before a cluster where "ann" may do everything with shop/web,
// and "bob" only reaches the paths.
func scene(t *testing.T) (*debug.Server, *cluster, *fleet) {
	t.Helper()
	f := &fleet{}
	s, c := server(t, f)
	return s, c, f
}

func server(t *testing.T, f debug.Fleet) (*debug.Server, *cluster) {
	t.Helper()
	c := &cluster{may: map[string]bool{
		"ann get placements/v1beta1 web in shop":    true,
		"ann get placements/v1beta1 gone in shop":   true,
		"ann create placements/v1beta1  in shop":    true,
		"ann get /debug/placements/shop/web":        true,
		"ann get /debug/placements/shop/gone":       true,
		"ann get /debug/placements/shop":            true,
		"ann get /debug/placements/shop/web/x":      true,
		"ann get /debug/placements/shop/../other":   true,
		"ann get /debug/placements//web":            true,
		"ann post /debug/placements/":               true,
		"ann post /debug/placements/what/ever/else": true,
		"bob get /debug/placements/shop/web":        true,
		"bob get /debug/placements/shop/gone":       true,
		"bob post /debug/placements/":               true,
	}}
	api := httptest.NewServer(c)
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		api.Close()
	})
	client, err := dynamic.NewForConfig(&rest.Config{Host: api.URL, QPS: -1})
	require.NoError(t, err)
	return debug.NewServer(debug.Options{Client: client, Fleet: f}), c
}

// ask sends a request and returns code and body, which is JSON.
func ask(t *testing.T, s http.Handler, method, path, token, body string) (int, map[string]any) {
	t.Helper()
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	r.URL.Path = path
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	out := map[string]any{}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &out), w.Body.String())
	if w.Code != http.StatusOK {
		require.Len(t, out, 1)
	}
	return w.Code, out
}

const sent = `{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement",` +
	`"metadata":{"name":"new","namespace":"shop"},"spec":{"numberOfClusters":2}}`

func TestWhoAsksWrongIsTold(t *testing.T) {
	for what, tc := range map[string]struct {
		method, path, token, body string
		code                      int
		text                      string
	}{
		"no token": {
			"GET",
			"/debug/placements/shop/web",
			"",
			"",
			401,
			"user information not found in request context",
		},
		"an unknown token": {
			"GET",
			"/debug/placements/shop/web",
			"nobody",
			"",
			401,
			"user information not found in request context",
		},
		"DELETE": {"DELETE", "/debug/placements/shop/web", "ann", "", 405, "method DELETE not allowed"},
		"PUT":    {"PUT", "/debug/placements/shop/web", "ann", "", 405, "method PUT not allowed"},
		"PATCH":  {"PATCH", "/debug/placements/shop/web", "ann", "", 405, "method PATCH not allowed"},
		"a caller who may not reach the path": {
			"GET",
			"/debug/placements/other/web",
			"ann",
			"",
			403,
			`user does not have permission to get "/debug/placements/other/web": by the rules`,
		},
		"a caller who may not get it": {
			"GET",
			"/debug/placements/shop/web",
			"bob",
			"",
			403,
			"user does not have permission to get placements in namespace shop: by the rules",
		},
		"a caller who may not create any": {
			"POST",
			"/debug/placements/",
			"bob",
			sent,
			403,
			"user does not have permission to create placements in namespace shop: by the rules",
		},
		"a caller who may not, and no placement": {
			"GET",
			"/debug/placements/shop/gone",
			"bob",
			"",
			403,
			"user does not have permission to get placements in namespace shop: by the rules",
		},
		"where rights cannot be asked": {
			"GET",
			"/debug/placements/shop/web",
			"broken",
			"",
			500,
			"failed to check permissions: ",
		},
		"one that is not there": {"GET", "/debug/placements/shop/gone", "ann", "", 404, "placement 'gone' not found"},
		"a namespace alone": {
			"GET",
			"/debug/placements/shop",
			"ann",
			"",
			400,
			"invalid debug path: namespace and name required",
		},
		"no namespace": {
			"GET",
			"/debug/placements//web",
			"ann",
			"",
			400,
			"invalid debug path: namespace and name required",
		},
		"more than a name":   {"GET", "/debug/placements/shop/web/x", "ann", "", 400, "unexpected key format: "},
		"a path that climbs": {"GET", "/debug/placements/shop/../other", "ann", "", 400, "unexpected key format: "},
		"no JSON": {
			"POST",
			"/debug/placements/",
			"ann",
			"{",
			400,
			"failed to unmarshal placement JSON: ",
		},
		"another kind": {
			"POST",
			"/debug/placements/",
			"ann",
			strings.Replace(sent, "Placement", "PlacementDecision", 1),
			400,
			"a Placement of cluster.open-cluster-management.io/v1beta1 is needed",
		},
		"one without a namespace": {
			"POST",
			"/debug/placements/",
			"ann",
			strings.Replace(sent, "shop", "", 1),
			400,
			"metadata.namespace",
		},
		"more than a mebibyte": {
			"POST",
			"/debug/placements/",
			"ann",
			strings.Repeat(" ", 1<<20) + sent,
			400,
			"request body too large: ",
		},
	} {
		t.Run(what, func(t *testing.T) {
			s, _, f := scene(t)
			code, body := ask(t, s, tc.method, tc.path, tc.token, tc.body)
			require.Equal(t, tc.code, code, body)
			require.Contains(t, body["error"], tc.text)
			require.Nil(t, f.explain, "nothing is simulated")
		})
	}
}

func TestWhoMayIsAnswered(t *testing.T) {
	s, c, f := scene(t)
	f.clusters = []schedule.ClusterReport{{
		Name:  "c1",
		Stage: "Selected",
	}, {
		Name:  "secret",
		Stage: "NotInSet",
	}, {
		Name:  "c2",
		Stage: "Taint",
	}}
	code, body := ask(t, s, "GET", "/debug/placements/shop/web", "ann", "")
	require.Equal(t, 200, code, body)
	require.Equal(t, map[string]any{"name": "web", "namespace": "shop"}, body["placement"].(map[string]any)["metadata"])
	require.Len(t, body["clusters"], 2, "clusters in no set of the namespace are left out")
	require.NotContains(t, fmt.Sprint(body), "secret")
	require.Len(t, c.asked, 2)
	for _, asked := range c.asked {
		require.Equal(t, "7", asked.UID)
		require.Equal(t, []string{"g"}, asked.Groups)
		require.Equal(t, authorizationv1.ExtraValue{"s"}, asked.Extra["scope"])
	}
	require.Equal(t, "cluster.open-cluster-management.io", c.asked[1].ResourceAttributes.Group)

	code, body = ask(t, s, "POST", "/debug/placements/what/ever/else", "ann", sent)
	require.Equal(t, 200, code, body)
	require.Equal(t, "new", f.explain.Name)
	require.EqualValues(t, 2, *f.explain.Spec.NumberOfClusters)

	c.may = nil
	code, _ = ask(t, s, "GET", "/debug/placements/shop/web", "ann", "")
	require.Equal(t, 403, code, "a right that is taken away ends at once")
}

func TestWhatKeepsAFleetFromAnsweringIsTold(t *testing.T) {
	for what, tc := range map[string]struct {
		err  error
		code int
	}{
		"another replica leads": {debug.ErrAway, 503},
		"it is too much":        {debug.ErrTooMuch, 422},
		"a cache is broken":     {errors.New("no such cache"), 500},
	} {
		t.Run(what, func(t *testing.T) {
			s, _, f := scene(t)
			f.err = tc.err
			code, body := ask(t, s, "POST", "/debug/placements/", "ann", sent)
			require.Equal(t, tc.code, code)
			require.Equal(t, tc.err.Error(), body["error"])
		})
	}
}

// slow is a fleet that explains only when it is released.
type slow struct {
	fleet
	began, end chan struct{}
	at         atomic.Int32
}

func (f *slow) Explain(_ context.Context, _ *clusterv1beta1.Placement) (verdict.Explanation, error) {
	if f.at.Add(1) > 1 {
		return verdict.Explanation{}, errors.New("two at a time")
	}
	defer f.at.Add(-1)
	f.began <- struct{}{}
	<-f.end
	return verdict.Explanation{}, nil
}

func TestOneIsSimulatedAtATime(t *testing.T) {
	f := &slow{began: make(chan struct{}), end: make(chan struct{})}
	s, c := server(t, f)
	codes := make(chan int, 2)
	for range 2 {
		go func() {
			r := httptest.NewRequest(http.MethodGet, "/debug/placements/shop/web", nil)
			r.Header.Set("Authorization", "Bearer ann")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			codes <- w.Code
		}()
	}
	<-f.began
	require.Eventually(t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.asked) == 4
	}, time.Minute, time.Millisecond, "both may")
	f.end <- struct{}{}
	require.Equal(t, 200, <-codes)
	<-f.began
	f.end <- struct{}{}
	require.Equal(t, 200, <-codes)
}
