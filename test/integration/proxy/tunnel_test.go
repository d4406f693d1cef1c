// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/tunnel"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

func TestAClusterWithoutATunnelIsToldAtOnce(t *testing.T) {
	s := start(t)
	s.join(t, "without")
	client := func(cluster string) error {
		_, err := s.on(t, cluster, "root", "system:masters").CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		return err
	}
	var err error
	soon(t, func() error { // the hub may not know the cluster yet
		if err = client("without"); apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
	requireCause(t, err, http.StatusServiceUnavailable, connectv1alpha1.CauseNoTunnel)
	require.ErrorContains(t, err, "feature gate ClusterProxy")
	requireCause(t, client("unknown"), http.StatusNotFound, connectv1alpha1.CauseUnknownCluster)
	requireCause(t, client("no.label"), http.StatusBadRequest, connectv1alpha1.CauseInvalidPath)
	stop := s.connect(t, "without")
	require.NoError(t, onlyForbidden(client("without")))
	stop()
	s.awaitTunnel(t, "without", false)
	err = client("without")
	requireCause(t, err, http.StatusServiceUnavailable, connectv1alpha1.CauseNoTunnel)
	require.ErrorContains(t, err, "since 20")
}

// upgraded is a connection of the agent of a cluster that has become a tunnel, before the first word.
func (s *scene) upgraded(t *testing.T, link *agent.Link, cluster string) (conn io.ReadWriteCloser) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		s.hub.Config.Host+connectv1alpha1.PathTunnels+cluster+connectv1alpha1.SuffixProxy, http.NoBody)
	require.NoError(t, err)
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", tunnel.Protocol)
	soon(t, func() error { // the hub may not know the cluster yet
		answer, err := link.Upgrades.RoundTrip(request)
		if err != nil || answer.StatusCode != http.StatusSwitchingProtocols {
			return fmt.Errorf("%+v %w", answer, err)
		}
		conn = answer.Body.(io.ReadWriteCloser)
		return nil
	})
	return conn
}

// onlyForbidden drops the refusal of a managed cluster whose user has no rights.
func onlyForbidden(err error) error {
	if err != nil && err.Error() == `pods is forbidden: User "root" cannot list resource "pods" in API group "" at the cluster scope` {
		return nil
	}
	return err
}

func TestAClusterThatIsNoLongerAcceptedIsCutOff(t *testing.T) {
	s := start(t)
	s.join(t, "revoked")
	s.connect(t, "revoked")
	_, err := s.dyn.Resource(clusters).Patch(t.Context(), "revoked", types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":false}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.awaitTunnel(t, "revoked", false)
	_, err = s.on(t, "revoked", "root", "system:masters").CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	requireCause(t, err, http.StatusServiceUnavailable, connectv1alpha1.CauseNotAccepted)
	_, err = s.dyn.Resource(clusters).Patch(t.Context(), "revoked", types.MergePatchType, []byte(`{"spec":{"hubAcceptsClient":true}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.awaitTunnel(t, "revoked", true)
}

func TestTheNewestTunnelWins(t *testing.T) {
	s := start(t)
	s.join(t, "newest")
	first := s.connect(t, "newest")
	before := s.registry.Presence("newest").Since
	s.run(t, "newest", s.asAgent)
	soon(t, func() error {
		if !s.registry.Presence("newest").Since.After(before) {
			return fmt.Errorf("no newer tunnel")
		}
		return nil
	})
	first()
	soon(t, func() error { // the first agent may have come back, and the second one has a pause then
		_, err := s.on(t, "newest", "root", "system:masters").CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
		return onlyForbidden(err)
	})
}

func TestAWatchGoesThrough(t *testing.T) {
	s := start(t)
	s.join(t, "watched")
	s.connect(t, "watched")
	grant(t, s.spoke.Dynamic(t), "wanda", "edit", "User", "wanda")
	s.allow(t, "User", "wanda", "watched")
	awaitSelf(t, through(s.personConfig(t, "wanda"), "watched"))
	maps := s.on(t, "watched", "wanda").CoreV1().ConfigMaps("default")
	soon(t, func() error {
		_, err := maps.List(t.Context(), metav1.ListOptions{})
		return err
	})
	seen, err := maps.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=watched"})
	require.NoError(t, err)
	defer seen.Stop()
	_, err = maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "watched"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	event := <-seen.ResultChan()
	require.Equal(t, "watched", event.Object.(*corev1.ConfigMap).Name)
	require.NoError(t, maps.Delete(t.Context(), "watched", metav1.DeleteOptions{}))
}

// TestMuchGoesThroughAndUpgradesDo: what the managed API server sends arrives unchanged, and a
// connection that switches to another protocol carries bytes both ways.
func TestMuchGoesThroughAndUpgradesDo(t *testing.T) {
	s := start(t)
	s.join(t, "much")
	const size = 64 << 20
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			conn, both, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
			_, _ = io.CopyN(conn, both, 5)
			return
		}
		_, _ = io.CopyN(w, pattern{}, size)
	}))
	defer there.Close()
	s.connectTo(t, "much", &rest.Config{Host: there.URL})
	config := through(s.personConfig(t, "root", "system:masters"), "much")
	answer := raw(t, config, http.MethodGet, "/big", nil)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	hash, want := sha256.New(), sha256.New()
	n, err := io.Copy(hash, answer.Body)
	require.NoError(t, err)
	require.EqualValues(t, size, n)
	_, err = io.CopyN(want, pattern{}, size)
	require.NoError(t, err)
	require.Equal(t, want.Sum(nil), hash.Sum(nil))

	config.NextProtos = []string{"http/1.1"}
	answer = raw(t, config, http.MethodPost, "/exec", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}})
	require.Equal(t, http.StatusSwitchingProtocols, answer.StatusCode)
	both := answer.Body.(io.ReadWriteCloser)
	_, err = both.Write([]byte("hello"))
	require.NoError(t, err)
	text := make([]byte, 5)
	_, err = io.ReadFull(bufio.NewReader(both), text)
	require.NoError(t, err)
	require.Equal(t, "hello", string(text))
}

// pattern is endless.
type pattern struct{}

func (pattern) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// TestOneUserCannotTakeAllStreams, and what the client no longer wants ends there, too.
func TestOneUserCannotTakeAllStreams(t *testing.T) {
	s := start(t)
	s.join(t, "limited")
	var held atomic.Int32
	there := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		held.Add(1)
		<-r.Context().Done()
		held.Add(-1)
	}))
	defer there.Close()
	s.connectTo(t, "limited", &rest.Config{Host: there.URL})
	config := through(s.personConfig(t, "root", "system:masters"), "limited")
	config.NextProtos = []string{"http/1.1"}
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	wait := func(ctx context.Context) (*http.Response, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/wait", http.NoBody)
		if err != nil {
			return nil, err
		}
		answer, err := client.Do(request)
		if err == nil {
			err = answer.Body.Close()
		}
		return answer, err
	}
	for range 32 {
		go func() {
			// A tunnel that was lost on a busy machine comes back.
			for ; ctx.Err() == nil; <-time.After(50 * time.Millisecond) {
				_, _ = wait(ctx)
			}
		}()
	}
	var answer *http.Response
	require.True(t, harness.Until(patience, func() bool {
		soon, end := context.WithTimeout(ctx, patience)
		defer end()
		if held.Load() == 32 {
			answer, err = wait(soon)
		}
		return answer != nil && answer.StatusCode == http.StatusTooManyRequests
	}), "another one gets %v, %v", &answer, &err)
	require.Equal(t, connectv1alpha1.CauseTooManyStreams, answer.Header.Get(connectv1alpha1.HeaderError))
	require.Equal(t, "1", answer.Header.Get("Retry-After"))
	cancel()
	require.True(t, harness.Until(patience, func() bool { return held.Load() == 0 }), "streams outlive those who asked for them")
}
