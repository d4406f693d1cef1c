// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/addon"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// late is an API server whose watch shows the secret of a pending request only when the agent
// looks whether the name of the credential is free.
type late struct {
	pending map[string]any
	show    chan struct{}
	shown   func()
	writes  chan string
}

func (l *late) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	answer := func(code int, value any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(value)
	}
	refuse := func(err *apierrors.StatusError) { answer(int(err.ErrStatus.Code), err.ErrStatus) }
	name := q.URL.Path[strings.LastIndexByte(q.URL.Path, '/')+1:]
	switch {
	case q.Method != http.MethodGet:
		l.writes <- q.Method
		refuse(apierrors.NewAlreadyExists(request.Secrets.GroupResource(), "pending"))
	case q.URL.Query().Get("watch") != "":
		answer(http.StatusOK, map[string]any{"type": "BOOKMARK", "object": map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{
				"resourceVersion": "1", "annotations": map[string]any{metav1.InitialEventsAnnotationKey: "true"},
			}}})
		_ = http.NewResponseController(w).Flush()
		select {
		case <-l.show:
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": l.pending})
			_ = http.NewResponseController(w).Flush()
			<-q.Context().Done()
		case <-q.Context().Done():
		}
	case name == "secrets":
		answer(http.StatusOK, map[string]any{"apiVersion": "v1", "kind": "SecretList", "items": []any{}, "metadata": map[string]any{"resourceVersion": "1"}})
	case strings.HasPrefix(name, "addon-pending-"):
		answer(http.StatusOK, l.pending)
	default:
		close(l.show)
		l.shown()
		refuse(apierrors.NewNotFound(request.Secrets.GroupResource(), name))
	}
}

// TestARequestThatShowsUpLateIsNotReplaced: the agent decides to begin a request because its cache
// does not show the one that it has begun. It is not overwritten when it shows up before the write:
// the hub may get both, and an administrator would approve the one that nobody waits for.
func TestARequestThatShowsUpLateIsNotReplaced(t *testing.T) {
	a := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "web"}}
	a.Status.KubeClientDriver = addonv1alpha1.DriverTypeCSR
	a.Status.Registrations = []addonv1alpha1.RegistrationConfig{{SignerName: addonv1alpha1.KubeAPIServerSigner}}

	l := &late{show: make(chan struct{}), writes: make(chan string, 10)}
	server := httptest.NewServer(l)
	defer server.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	p := &Place{Client: client, Secrets: NewSecrets(client, "agent", "", logr.Discard())}
	c, err := New(Config{
		Hub: client, Cluster: "c1", Endpoint: hubConfig(), AddOns: addon.NewAddOns(nil, "c1", logr.Discard()),
		Spoke: p, Management: p, Namespace: "agent", Clock: clock.RealClock{},
	})
	require.NoError(t, err)
	defer c.queue.Close()
	seen := make(chan struct{}, 10)
	p.Secrets.OnChange(func(reconcile.Key) { seen <- struct{}{} })
	l.shown = func() { <-seen }

	w := wantsOf(a, c.config.HubID)[0]
	u := c.newSecret(State{Want: w, Digest: w.Digest()}, addonv1alpha1.CredentialPending, request.Pending{Request: "first", Key: []byte("key")}.Data())
	u.SetNamespace("agent")
	u.SetName(w.pendingName())
	u.SetUID("1")
	u.SetResourceVersion("2")
	l.pending = u.Object

	ended := make(chan error)
	ctx := t.Context()
	running, stop := context.WithCancel(ctx)
	go func() { ended <- p.Secrets.Run(running) }()
	defer func() { stop(); require.NoError(t, <-ended) }()
	require.NoError(t, p.Secrets.WaitSynced(ctx))

	s := c.gather(ctx, a, w)
	plan := Decide(s)
	require.Equal(t, request.StepBegin, plan.Step)
	require.True(t, apierrors.IsAlreadyExists(c.carryOut(ctx, s, plan)))
	require.Equal(t, http.MethodPost, <-l.writes, "it may be created, but not replaced")
	require.Empty(t, l.writes)
	pending, _ := c.pendingOf(w)
	require.Equal(t, "first", pending.Pending.Request)
}
