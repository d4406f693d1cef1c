// SPDX-License-Identifier: Apache-2.0

//go:build perf

package proxy_test

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	confighub "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	proxyagent "github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

// The network between the managed clusters and all else: as between two regions of a continent.
const (
	roundTrip = 40 * time.Millisecond
	width     = 100 << 20 / 8
)

// spare is how much longer than a multiple of direct access the first byte may take.
const spare = 20 * time.Millisecond

// fetch gets a path, and returns how long its first byte and the whole take.
func fetch(t *testing.T, client *http.Client, url string, size int64) (first, whole time.Duration) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	began := time.Now()
	answer, err := client.Do(request)
	require.NoError(t, err)
	body := bufio.NewReader(answer.Body)
	_, err = body.Peek(1)
	require.NoError(t, err)
	first = time.Since(began)
	n, err := io.Copy(io.Discard, body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.GreaterOrEqual(t, n, size)
	return first, time.Since(began)
}

// pathTo is a client and the address of the same server by one of two ways.
type pathTo struct {
	client *http.Client
	url    string
}

// ways returns those to a managed cluster: by the network, and by the network and the hub.
func (s *scene) ways(t *testing.T, cluster string, spoke *rest.Config) (direct, tunnel pathTo) {
	t.Helper()
	s.join(t, cluster)
	access := s.access(t, cluster, "one")
	access.Server = newWire(t, s.hub.Config, roundTrip/2, width).server()
	link, err := agent.NewLink(access, "test")
	require.NoError(t, err)
	s.runOn(t, link, cluster, spoke)
	s.awaitTunnel(t, cluster, true)
	near := rest.CopyConfig(spoke)
	near.Host, near.NextProtos = newWire(t, spoke, roundTrip/2, width).server(), []string{"http/1.1"}
	far := through(s.personConfig(t, "root", "system:masters"), cluster)
	client := func(c *rest.Config) *http.Client {
		out, err := rest.HTTPClientFor(c)
		require.NoError(t, err)
		return out
	}
	return pathTo{client(near), near.Host}, pathTo{client(far), far.Host}
}

func TestTheWayThroughTheHubStaysWithinItsBudgets(t *testing.T) {
	b := budget.Open(t, "../../perf/proxy.yaml")
	s := start(t)
	s.budgetFirstByte(t, b)
	s.budgetThroughput(t, b)
	s.budgetAgent(t, b)
	s.budgetTunnels(t, b)
	b.Complete()
}

// budgetFirstByte asks the API server of a cluster for its version, in turns.
func (s *scene) budgetFirstByte(t *testing.T, b *budget.File) {
	direct, tunnel := s.ways(t, "firstbyte", s.asAgent)
	const warm, rounds = 3, 31
	var near, far []time.Duration
	for i := range warm + rounds {
		one, _ := fetch(t, direct.client, direct.url+"/version", 1)
		two, _ := fetch(t, tunnel.client, tunnel.url+"/version", 1)
		if i >= warm {
			near, far = append(near, one), append(far, two)
		}
	}
	t.Logf("first byte: median %s directly, %s through the hub", budget.Median(near), budget.Median(far))
	b.Count("firstByte", float64(budget.Median(far)-spare)/float64(budget.Median(near)))
}

// budgetThroughput fetches much from a server in the place of a cluster's API server, in turns.
func (s *scene) budgetThroughput(t *testing.T, b *budget.File) {
	const size, rounds = 8 << 20, 3
	there := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.CopyN(w, pattern{}, size) }))
	t.Cleanup(there.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: there.Certificate().Raw})
	direct, tunnel := s.ways(t, "throughput", &rest.Config{Host: there.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}})
	var near, far []time.Duration
	for range rounds {
		_, one := fetch(t, direct.client, direct.url+"/big", size)
		_, two := fetch(t, tunnel.client, tunnel.url+"/big", size)
		near, far = append(near, one), append(far, two)
	}
	t.Logf("8 MiB: median %s directly, %s through the hub", budget.Median(near), budget.Median(far))
	b.Count("throughput", float64(budget.Median(far))/float64(budget.Median(near)))
}

// budgetAgent measures what an idle tunnel adds to an agent's process.
func (s *scene) budgetAgent(t *testing.T, b *budget.File) {
	s.join(t, "idle")
	access := s.access(t, "idle", "one")
	e := launch(t, "30", "agent", file(t, &rest.Config{
		Host: access.Server, TLSClientConfig: rest.TLSClientConfig{CAData: access.CAData, CertData: access.CertData, KeyData: access.KeyData},
	}), file(t, s.asAgent), "idle")
	before := e.rested(t)
	e.say(t, "open")
	s.awaitTunnel(t, "idle", true)
	b.Bytes("agent", e.rested(t).Anon-before.Anon)
}

// budgetTunnels measures what tunnels add to a hub's process.
func (s *scene) budgetTunnels(t *testing.T, b *budget.File) {
	count := budget.Sized(1000, 300)
	grown := s.idle(t, count)
	b.Count("tunnel", float64(grown)/float64(count)/(1<<10))
	if !testing.Short() {
		b.Bytes("thousandTunnels", grown)
	}
}

// TestIdleTunnelsOfALargeFleet measures what they add to a hub's process ("make perf-tunnels").
func TestIdleTunnelsOfALargeFleet(t *testing.T) {
	b := budget.Open(t, "../../perf/tunnels.yaml")
	count := budget.Sized(4000, 500)
	grown := start(t).idle(t, count)
	b.Count("tunnel", float64(grown)/float64(count)/(1<<10))
	b.Complete()
}

// idle opens tunnels to a hub's process, sends a request through each, and returns by how much the
// private memory of that process grew.
func (s *scene) idle(t *testing.T, count int) (grown int64) {
	t.Helper()
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("many-%d", i)
	}
	each(t, names, func(name string) { s.join(t, name) })
	serving := s.serving(t)
	e := launch(t, "15", "hub", file(t, s.hub.As(t, confighub.Namespace, confighub.Name)), serving.CertFile, serving.KeyFile)
	port, err := strconv.Atoi(e.line(t))
	require.NoError(t, err)
	s.register(t, port)
	t.Cleanup(func() { s.register(t, s.port) })
	before, server := e.rested(t), s.apiServer(t)
	began := time.Now()
	each(t, names, func(name string) {
		hold(t, s.link(t, name, "one"), proxyagent.Config{Spoke: s.asAgent, Cluster: name, Clock: clock.RealClock{}, Log: logr.Discard()})
	})
	user := s.personConfig(t, "root", "system:masters")
	each(t, names, func(name string) {
		soon(t, func() error {
			if answer := raw(t, user, http.MethodGet, connectv1alpha1.ServerPath(name)+"/version", nil); answer.StatusCode != http.StatusOK {
				return fmt.Errorf("the tunnel of %s: %s", name, answer.Status)
			}
			return nil
		})
	})
	t.Logf("%d tunnels after %s", count, time.Since(began).Round(time.Millisecond))
	grown = e.rested(t).Anon - before.Anon
	t.Logf("%d tunnels: %s; kube-apiserver: %s before, %s after", count, memory.MiB(grown), server, s.apiServer(t))
	return grown
}

// apiServer returns the memory of the hub's API server, which collects its garbage when it likes.
func (s *scene) apiServer(t *testing.T) memory.Usage {
	t.Helper()
	state, err := playground.Inspect(s.hub.Playground.Dir)
	require.NoError(t, err)
	return budget.MemoryOf(t, state.PID(s.hub.Playground.Dir, playground.APIServer))
}

// each calls do for all names, several at a time.
func each(t *testing.T, names []string, do func(string)) {
	t.Helper()
	const atOnce = 16
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, name := range names {
		group.Go(func() error {
			do(name)
			return nil
		})
	}
	require.NoError(t, group.Wait())
}

// process is a running endpoint.
type process struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Scanner
}

// launch starts an endpoint, with the GC percentage of the program for which it stands.
func launch(t *testing.T, collectAt string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(t.Context(), harness.Program(t, "test/integration/proxy/endpoint"), args...)}
	p.cmd.Env = append(os.Environ(), "GOGC="+collectAt)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.in, p.out = in, bufio.NewScanner(out)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = in.Close() // which ends it
		_ = p.cmd.Wait()
	})
	return p
}

func (p *process) say(t *testing.T, line string) {
	t.Helper()
	_, err := fmt.Fprintln(p.in, line)
	require.NoError(t, err)
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	require.True(t, p.out.Scan(), "%v", p.out.Err())
	return strings.TrimSpace(p.out.Text())
}

// rested returns its memory after it has returned what it does not use.
func (p *process) rested(t *testing.T) memory.Usage {
	t.Helper()
	p.say(t, "rest")
	require.Equal(t, "rested", p.line(t))
	return budget.MemoryOf(t, p.cmd.Process.Pid)
}

// file writes a client configuration to a kubeconfig file.
func file(t *testing.T, c *rest.Config) string {
	t.Helper()
	out := clientcmdapi.NewConfig()
	out.CurrentContext = "one"
	out.Contexts["one"] = &clientcmdapi.Context{Cluster: "one", AuthInfo: "one"}
	out.Clusters["one"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
	out.AuthInfos["one"] = &clientcmdapi.AuthInfo{Token: c.BearerToken, ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*out, path))
	return path
}
