// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

// rested holds clusters that tests have used and that were reset.
var rested struct {
	sync.Mutex
	plain, withNode []*renewable
}

// Fresh returns a cluster without nodes for one test. If an earlier test of this process
// had one, under whatever name, that one is reused: its stored state is reset to what it
// was after its start, except for its identity, which is new. A reset takes a tenth of the
// time of a start. Tests that stop processes of the cluster or change their files use
// ControlPlane.
func Fresh(t testing.TB, name string) *Cluster {
	t.Helper()
	return fresh(t, name, &rested.plain, nil)
}

// FreshWithNode is Fresh for a cluster with a process node, which can run the programs of
// these images and no others; see WithNode. The Node object is named after the first test
// that had the cluster. What runs on it ends with the test, the clusters that were created
// last first: create a cluster before those whose agents connect to it.
func FreshWithNode(t testing.TB, name string, images map[string]string) *Cluster {
	t.Helper()
	return fresh(t, name, &rested.withNode, images)
}

func fresh(t testing.TB, name string, list *[]*renewable, images map[string]string) *Cluster {
	t.Helper()
	r := takeRested(list)
	if r == nil {
		var err error
		r, err = newRenewable(t.Context(), name, images)
		require.NoError(t, err)
	} else {
		require.NoError(t, r.resume())
		require.NoError(t, r.use(t.Context(), name, images))
	}
	c := r.Cluster
	t.Cleanup(func() {
		c.explain(t)
		if !t.Failed() {
			// The context of the test has ended by now.
			ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
			defer cancel()
			err := r.renew(ctx)
			if err == nil {
				err = r.pause()
			}
			if err == nil {
				c.unclaim()
				rested.Lock()
				defer rested.Unlock()
				*list = append(*list, r)
				return
			}
			t.Logf("cluster %s is not used again: %v", name, err)
		}
		require.NoError(t, r.Stop())
	})
	return c
}

func takeRested(list *[]*renewable) *renewable {
	rested.Lock()
	defer rested.Unlock()
	if len(*list) == 0 {
		return nil
	}
	last := len(*list) - 1
	r := (*list)[last]
	*list = (*list)[:last]
	return r
}

// renewTimeout bounds how long resetting a cluster may take, on a machine that may stand still meanwhile.
const renewTimeout = 3 * time.Minute

// renewable is a cluster with the state it stored after its start.
type renewable struct {
	// Cluster is another value for each test, because tests may keep theirs.
	*Cluster
	// node is whether it has a process node, which runs while a test has the cluster.
	node   bool
	etcd   *http.Client
	stored map[string][]byte
	groups map[string]bool
}

// newRenewable starts a cluster, with a process node if there are images.
func newRenewable(ctx context.Context, name string, images map[string]string) (*renewable, error) {
	options := []Option{modest}
	if images != nil {
		options = append(options, Node(images))
	}
	cluster, err := launch(ctx, name, options...)
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(cluster.Playground.Dir, "etcd:1")
	r := &renewable{Cluster: cluster, etcd: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}}
	if r.stored, err = r.read(ctx); err == nil {
		r.groups, err = r.served()
	}
	if err != nil {
		return nil, fmt.Errorf("reading what cluster %s stores: %w; %w", name, err, cluster.Stop())
	}
	// A node that is stopped is forgotten: it registers itself again.
	maps.DeleteFunc(r.stored, func(key string, _ []byte) bool {
		return strings.HasPrefix(key, nodes) || strings.HasPrefix(key, nodeLeases)
	})
	r.node = images != nil
	return r, nil
}

// components are the processes of a cluster without nodes, each after those that it needs.
var components = []playground.Component{playground.Etcd, playground.APIServer, playground.ControllerManager}

// pause lets a cluster that no test has take no time of the processor. An idle one takes a twenty-fifth
// of a core, and a suite has many.
func (r *renewable) pause() error {
	for _, component := range slices.Backward(components) {
		if err := r.Playground.Pause(component); err != nil {
			return err
		}
	}
	return nil
}

// resume ends a pause.
func (r *renewable) resume() error {
	for _, component := range components {
		if err := r.Playground.Resume(component); err != nil {
			return err
		}
	}
	return nil
}

// use gives a cluster that was reset to another test, under a name of that test's choice.
func (r *renewable) use(ctx context.Context, name string, images map[string]string) error {
	kubeconfig, err := clientcmd.LoadFromFile(r.Kubeconfig)
	if err != nil {
		return err
	}
	named := clientcmdapi.NewConfig()
	named.Clusters[name], named.AuthInfos[name] = kubeconfig.Clusters[r.Name], kubeconfig.AuthInfos[r.Name]
	named.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	named.CurrentContext = name
	file := filepath.Join(r.dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*named, file); err != nil {
		return err
	}
	r.Cluster = &Cluster{Name: name, Config: rest.CopyConfig(r.Playground.Config), Kubeconfig: file, Playground: r.Playground, dir: r.dir}
	if !r.node {
		return nil
	}
	return r.Playground.StartNode(ctx, images)
}

const (
	registry = "/registry/"
	// identity is the namespace whose UID is that of the cluster.
	identity    = registry + "namespaces/kube-system"
	definitions = registry + "apiextensions.k8s.io/customresourcedefinitions/"
	services    = registry + "apiregistration.k8s.io/apiservices/"
	leases      = registry + "leases/"
	nodes       = registry + "minions/"
	nodeLeases  = leases + "kube-node-lease/"
)

// own is how often a change must come back until it counts as the cluster's own. The test
// has ended by then: what comes back are the first writes of controllers that had not
// made them when the state was read.
const own = 10

// renew resets the cluster. Definitions are removed after their objects, and the state is
// read again until the controllers have nothing left to add.
func (r *renewable) renew(ctx context.Context) error {
	if r.node {
		if err := r.Playground.StopNode(); err != nil {
			return err
		}
	}
	if err := r.identify(); err != nil {
		return err
	}
	undone := map[string]int{}
	for {
		changes, err := r.undo(ctx, undone)
		if err != nil {
			return err
		}
		served, err := r.served()
		if err != nil {
			return err
		}
		if len(changes) == 0 && maps.Equal(served, r.groups) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("bringing cluster %s back: %w; %v changed, served are %v", r.Name, ctx.Err(), changes, slices.Sorted(maps.Keys(served)))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// undo restores every key that differs from the stored state and returns the keys that it
// changed. undone counts how often each key was restored.
func (r *renewable) undo(ctx context.Context, undone map[string]int) ([]string, error) {
	now, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	var changes []string
	for _, key := range inOrder(now, r.stored) {
		was, is := r.stored[key], now[key]
		switch {
		case bytes.Equal(was, is), was != nil && is != nil && strings.HasPrefix(key, leases):
			continue
		case is != nil && undone[key] == own:
			r.stored[key] = is
			continue
		case was == nil:
			err = r.call(ctx, "deleterange", map[string]any{"key": []byte(key)}, nil)
		default:
			err = r.call(ctx, "put", map[string]any{"key": []byte(key), "value": was}, nil)
		}
		if err != nil {
			return nil, err
		}
		changes = append(changes, key)
		undone[key]++
	}
	return changes, nil
}

// inOrder returns the keys of both maps, namespaces first, definitions last.
func inOrder(a, b map[string][]byte) []string {
	keys := map[string]bool{}
	for _, m := range []map[string][]byte{a, b} {
		for key := range m {
			keys[key] = true
		}
	}
	rank := func(key string) int {
		switch {
		case strings.HasPrefix(key, registry+"namespaces/"):
			return 0
		case strings.HasPrefix(key, definitions), strings.HasPrefix(key, services):
			return 2
		}
		return 1
	}
	return slices.SortedFunc(maps.Keys(keys), func(a, b string) int { return rank(a) - rank(b) })
}

// identify gives the cluster a new identity, of the same length as the old one.
func (r *renewable) identify() error {
	stored := r.stored[identity]
	const label = "kube-system"
	at := bytes.Index(stored, []byte(label))
	for i := max(at, 0); i+36 <= len(stored); i++ {
		if _, err := uuid.ParseBytes(stored[i : i+36]); err == nil && stored[i+8] == '-' {
			r.stored[identity] = slices.Concat(stored[:i], []byte(uuid.NewString()), stored[i+36:])
			return nil
		}
	}
	return fmt.Errorf("the namespace %s has no UID", label)
}

// read returns everything that the cluster stores.
func (r *renewable) read(ctx context.Context) (map[string][]byte, error) {
	var answer struct {
		Kvs []struct{ Key, Value []byte }
	}
	end := []byte(registry)
	end[len(end)-1]++
	if err := r.call(ctx, "range", map[string]any{"key": []byte(registry), "range_end": end}, &answer); err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(answer.Kvs))
	for _, kv := range answer.Kvs {
		out[string(kv.Key)] = kv.Value
	}
	return out, nil
}

// call sends a request to etcd, which speaks JSON with keys and values in base64.
func (r *renewable) call(ctx context.Context, method string, question map[string]any, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/kv/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := r.etcd.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s: %s", method, response.Status)
	}
	if answer == nil {
		answer = &struct{}{}
	}
	return json.NewDecoder(response.Body).Decode(answer)
}

// served returns the API groups that the cluster serves.
func (r *renewable) served() (map[string]bool, error) {
	client, err := discovery.NewDiscoveryClientForConfig(r.Config)
	if err != nil {
		return nil, err
	}
	list, err := client.ServerGroups()
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for _, group := range list.Groups {
		out[group.Name] = true
	}
	return out, nil
}
