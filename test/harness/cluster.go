// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// folderPattern names the folders of clusters below the system's temporary folder.
const folderPattern = "ocm-test-"

// Cluster is a running cluster of a test.
type Cluster struct {
	// Name of the cluster and of the context in its kubeconfig file.
	Name string
	// Config is the administrator's client configuration, without rate limit.
	Config *rest.Config
	// Kubeconfig is the path of the administrator's kubeconfig file.
	Kubeconfig string
	// Playground is the cluster itself: kill, restart, pause, logs.
	Playground *playground.Cluster

	dir string
}

// Option changes how a cluster is started.
type Option func(*playground.Config)

// SigningDuration sets the lifetime of certificates issued for CSRs.
// kube-controller-manager backdates them by five minutes; 150 s is the shortest useful
// value (`--cluster-signing-duration`).
func SigningDuration(d time.Duration) Option {
	return func(c *playground.Config) { c.SigningDuration = d }
}

// APIServer adds arguments to kube-apiserver.
func APIServer(args ...string) Option {
	return func(c *playground.Config) { c.APIServerArgs = append(c.APIServerArgs, args...) }
}

// EtcdMembers sets the number of members of etcd.
func EtcdMembers(n int) Option {
	return func(c *playground.Config) { c.EtcdMembers = n }
}

// ControlPlane starts a cluster without nodes for one test.
func ControlPlane(t testing.TB, name string, options ...Option) *Cluster {
	t.Helper()
	cluster, err := launch(t.Context(), name, options...)
	require.NoError(t, err)
	t.Cleanup(func() {
		cluster.explain(t)
		require.NoError(t, cluster.Stop())
	})
	return cluster
}

// WithNode starts a cluster with a process node for one test. images maps the names of
// the images that it can run to programs, such as "ocm-agent" to a path; see Program.
func WithNode(t testing.TB, name string, images map[string]string, options ...Option) *Cluster {
	t.Helper()
	return ControlPlane(t, name, append(options, Node(images))...)
}

// Node adds a process node to a cluster; see WithNode.
func Node(images map[string]string) Option {
	return func(c *playground.Config) {
		c.KeeperEnv, c.Images = keeperEnv(), images
	}
}

// spacious lets the processes of Kubernetes, which do most of the work of a suite, collect garbage
// less often: they take a sixth less CPU, and more memory, but not without a limit.
var spacious = []string{"GOGC=400", "GOMEMLIMIT=1GiB"}

// modest makes the processes of Kubernetes run one thread each: that takes a sixth less CPU, and a
// suite has more of them than there are processors. Where speed is measured, they have all.
func modest(c *playground.Config) { c.Env = append(c.Env, "GOMAXPROCS=1") }

// launch starts a cluster without nodes; the caller stops it. It is for TestMain.
func launch(ctx context.Context, name string, options ...Option) (*Cluster, error) {
	binaries, err := Binaries(ctx)
	if err != nil {
		return nil, err
	}
	reaper, err := reaper()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", folderPattern)
	if err != nil {
		return nil, err
	}
	config := playground.Config{Dir: filepath.Join(dir, name), Name: name, Binaries: binaries, Reaper: reaper, Env: slices.Clone(spacious)}
	for _, option := range options {
		option(&config)
	}
	if config.KeeperEnv != nil {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		config.Keeper = []string{self}
	}
	if err := reaper.Watch(dir); err != nil {
		return nil, err
	}
	running, err := playground.Start(ctx, config)
	if err != nil {
		return nil, errors.Join(err, playground.Remove(dir))
	}
	return &Cluster{Name: name, Config: running.Config, Kubeconfig: running.Kubeconfig, Playground: running, dir: dir}, nil
}

// Stop ends the cluster's processes and removes its folder.
func (c *Cluster) Stop() error {
	return errors.Join(c.Playground.Stop(), playground.Remove(c.dir))
}

// shared holds one start for each name.
var shared sync.Map

// Shared is a cluster that all tests of this process use under the same name; the options
// are those of the first caller. It runs until the process ends, when the reaper stops
// it. Tests that break a cluster, or count its objects, use ControlPlane.
func Shared(t testing.TB, name string, options ...Option) *Cluster {
	t.Helper()
	start, _ := shared.LoadOrStore(name, sync.OnceValues(func() (*Cluster, error) {
		return launch(context.Background(), name, append(options, modest)...)
	}))
	cluster, err := start.(func() (*Cluster, error))()
	require.NoError(t, err)
	t.Cleanup(func() { cluster.explain(t) })
	return cluster
}

// explain adds the ends of the logs of the process node and its pods to a failed test.
func (c *Cluster) explain(t testing.TB) {
	if !t.Failed() {
		return
	}
	files, err := filepath.Glob(filepath.Join(c.Playground.Dir, "logs", "*.log"))
	if err != nil {
		t.Log(err)
	}
	for _, file := range append(files, c.Playground.LogFile(playground.ProcessNode)) {
		if _, err := os.Stat(file); err == nil {
			t.Logf("end of %s of cluster %s:\n%s", filepath.Base(file), c.Name, process.Tail(file, 15))
		}
	}
}

// Binaries returns the Kubernetes programs of this machine.
func Binaries(ctx context.Context) (playground.Binaries, error) {
	if err := ctx.Err(); err != nil {
		return playground.Binaries{}, err
	}
	return binaries()
}

// binaries looks for the programs once in a test process, because that means running one
// of them.
var binaries = sync.OnceValues(func() (playground.Binaries, error) {
	cache := os.Getenv("OCM_KUBERNETES_CACHE")
	if cache == "" {
		root, err := os.UserCacheDir()
		if err != nil {
			return playground.Binaries{}, err
		}
		cache = playground.CacheDir(root)
	}
	return playground.FindBinaries(context.Background(), os.Getenv("KUBEBUILDER_ASSETS"), cache)
})

// Dynamic returns the administrator's dynamic client.
func (c *Cluster) Dynamic(t testing.TB) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	return client
}

// Front puts a proxy in front of the cluster's API server, through which programs that run as
// processes of their own pass traffic, and returns its address.
func (c *Cluster) Front(t testing.TB, side string, traffic *faults.Process) string {
	t.Helper()
	api, serving, err := c.Playground.FrontProxy()
	require.NoError(t, err)
	return traffic.Front(t, side, api, serving)
}

// As returns a client configuration with a real token of a ServiceAccount, and nothing
// else. The namespace and the ServiceAccount are created when they are absent.
func (c *Cluster) As(t testing.TB, namespace, serviceAccount string) *rest.Config {
	t.Helper()
	client := c.Dynamic(t)
	c.ensure(t, client.Resource(namespaces), object("v1", "Namespace", "", namespace))
	accounts := client.Resource(serviceAccounts).Namespace(namespace)
	c.ensure(t, accounts, object("v1", "ServiceAccount", namespace, serviceAccount))
	request := object("authentication.k8s.io/v1", "TokenRequest", namespace, serviceAccount)
	request.Object["spec"] = map[string]any{"expirationSeconds": int64(24 * 60 * 60)}
	answer, err := accounts.Create(t.Context(), request, metav1.CreateOptions{}, "token")
	require.NoError(t, err)
	token, found, err := unstructured.NestedString(answer.Object, "status", "token")
	require.NoError(t, err)
	require.True(t, found, "the TokenRequest's answer holds no token")
	config := rest.AnonymousClientConfig(c.Config)
	config.BearerToken, config.QPS = token, -1
	return config
}

var (
	namespaces      = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

func (c *Cluster) ensure(t testing.TB, client dynamic.ResourceInterface, o *unstructured.Unstructured) {
	t.Helper()
	_, err := client.Create(t.Context(), o, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err, "%s %s in %s", o.GetKind(), o.GetName(), c.Name)
	}
}

func object(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}
