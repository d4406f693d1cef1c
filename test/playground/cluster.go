// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/node"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// startTimeout bounds how long a cluster may take to become usable: usually seconds, but
// minutes when many are started on a busy machine. A process that ends instead is
// reported immediately.
const startTimeout = 5 * time.Minute

// Config describes the cluster to run, and where.
type Config struct {
	// Dir holds everything of this cluster. It is created when it is absent.
	Dir string
	// Name of the cluster: kubeconfig context, node name, certificate authority.
	Name string
	// Binaries come from FindBinaries.
	Binaries Binaries
	// Keeper is the command, with its arguments, that runs keeper.Run with the arguments
	// appended to it. If it is set, the cluster gets a process node. KeeperEnv is the
	// complete environment of that process.
	Keeper, KeeperEnv []string
	// Images are the programs that the process node can run, by the last part
	// of the image's repository: "ocm-hub" for ghcr.io/kubectl-ocm/ocm-hub:v1.
	Images map[string]string
	// SigningDuration is the lifetime of certificates issued for a
	// CertificateSigningRequest. kube-controller-manager backdates them by five minutes.
	// Zero is its default of one year.
	SigningDuration time.Duration
	// APIServerArgs are passed to kube-apiserver after the playground's own arguments.
	APIServerArgs []string
	// EtcdMembers is the number of members of etcd, at most 9; zero is one. Member names the
	// processes.
	EtcdMembers int
	// Env is the complete environment of the processes of Kubernetes.
	Env []string
	// Reaper, if set, ends the cluster when this process ends. Otherwise the cluster runs
	// until Stop.
	Reaper *process.Reaper
	// Clock dates the certificates; nil is the real one.
	Clock clock.PassiveClock
}

// Component names one process of a cluster.
type Component string

// The processes of a cluster, in the order they start.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	ProcessNode       Component = "process-node"
)

// Member returns the process of the n-th member of etcd; the first one is Etcd.
func Member(n int) Component {
	if n == 1 {
		return Etcd
	}
	return Component(fmt.Sprintf("%s-%d", Etcd, n))
}

// Cluster is a running cluster.
type Cluster struct {
	// Name and Dir are those of the Config.
	Name, Dir string
	// Server is the address of kube-apiserver, https://127.0.0.1:<port>.
	Server string
	// CA is the certificate authority in PEM.
	CA []byte
	// Kubeconfig is the path of the administrator's kubeconfig file.
	Kubeconfig string
	// Config is the administrator's client configuration, without rate limit.
	Config *rest.Config

	config Config
	http   *http.Client
	client dynamic.Interface
	pki    files
	node   node.Config
	port   int
	hold   *heldPort
}

// files are the paths of keys and certificates of a cluster.
type files struct {
	authority               *pki.Authority
	serving, admin, manager pki.Pair
	// frontProxy is what kube-apiserver presents to aggregated APIs, signed by an authority of
	// its own.
	frontProxyCA               string
	frontProxy                 pki.Pair
	serviceAccount             string
	adminConfig, managerConfig string
}

// Start starts the cluster in c.Dir and returns when it serves requests and its
// controllers work. Processes of an earlier start are ended first; data, identity and
// address stay as they were. ctx bounds the start only. After an error, nothing of this
// start keeps running.
func Start(ctx context.Context, c Config) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cluster, err := prepare(c)
	if err != nil {
		return nil, fmt.Errorf("preparing cluster %s: %w", c.Name, err)
	}
	if err := cluster.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting cluster %s: %w", c.Name, err), cluster.Stop())
	}
	return cluster, nil
}

func prepare(c Config) (*Cluster, error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return nil, err
	}
	c.Dir = dir
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if c.Reaper != nil {
		if err := c.Reaper.Watch(dir); err != nil {
			return nil, err
		}
	}
	if err := process.EndAll(dir); err != nil {
		return nil, err
	}
	cluster := &Cluster{Name: c.Name, Dir: dir, config: c}
	if err := cluster.choosePort(); err != nil {
		return nil, err
	}
	if err := cluster.writeFiles(); err != nil {
		return nil, errors.Join(err, cluster.hold.release())
	}
	return cluster, nil
}

// writeFiles creates keys, certificates and kubeconfig files.
func (c *Cluster) writeFiles() error {
	if err := c.makeCertificates(); err != nil {
		return err
	}
	c.CA = c.pki.authority.Certificate()
	c.Kubeconfig = filepath.Join(c.Dir, "admin.kubeconfig")
	c.pki.managerConfig = filepath.Join(c.Dir, "kube-controller-manager.kubeconfig")
	if err := c.writeKubeconfig(c.Kubeconfig, c.pki.admin); err != nil {
		return err
	}
	if err := c.writeKubeconfig(c.pki.managerConfig, c.pki.manager); err != nil {
		return err
	}
	if c.hasNode() {
		if err := c.writeNodeFiles(); err != nil {
			return err
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading kubeconfig: %w", err)
	}
	config.QPS = -1 // no rate limit
	c.Config = config
	if c.http, err = rest.HTTPClientFor(config); err != nil {
		return fmt.Errorf("making the administrator's client: %w", err)
	}
	if c.client, err = dynamic.NewForConfigAndClient(config, c.http); err != nil {
		return fmt.Errorf("making the administrator's client: %w", err)
	}
	return nil
}

// start runs the processes one after the other, each as soon as it can work.
func (c *Cluster) start(ctx context.Context) error {
	components := []Component{Etcd, APIServer, ControllerManager}
	for n := 2; n <= c.config.EtcdMembers; n++ { // the first member is ready once the majority runs
		components = slices.Insert(components, 0, Member(n))
	}
	if c.hasNode() {
		components = append(components, ProcessNode)
	}
	for _, component := range components {
		if err := c.run(ctx, component); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends every process of the cluster immediately. The folder stays, and Start
// restarts the cluster.
func (c *Cluster) Stop() error {
	return errors.Join(process.EndAll(c.Dir), c.hold.release())
}

// Remove ends everything in the folder of a cluster, or in a folder of several of them,
// and deletes it. A missing folder is not an error.
func Remove(dir string) error {
	if err := process.EndAll(dir); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// FrontProxy returns what a proxy in front of kube-apiserver needs: the configuration with which
// it may tell, in headers, whose requests it sends on, and the certificate of kube-apiserver.
func (c *Cluster) FrontProxy() (*rest.Config, tls.Certificate, error) {
	serving, err := tls.LoadX509KeyPair(c.pki.serving.CertFile, c.pki.serving.KeyFile)
	if err != nil {
		return nil, serving, fmt.Errorf("reading the certificate of kube-apiserver: %w", err)
	}
	return &rest.Config{Host: c.Server, TLSClientConfig: rest.TLSClientConfig{
		CAData: c.CA, CertFile: c.pki.frontProxy.CertFile, KeyFile: c.pki.frontProxy.KeyFile,
	}}, serving, nil
}

// Kill ends one process of the cluster without warning, as a crash would.
func (c *Cluster) Kill(component Component) error { return process.End(c.Dir, string(component)) }

// Restart ends one process and starts it again; it returns when the new process is ready.
func (c *Cluster) Restart(ctx context.Context, component Component) error {
	if err := c.Kill(component); err != nil {
		return fmt.Errorf("restarting %s: %w", component, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return c.run(ctx, component)
}

// Replace starts the cluster again at its address with an empty store, as after the loss of its
// disks: with anew, also with another certificate authority and other keys. Kubeconfig files are
// written again, and Config is another one.
func (c *Cluster) Replace(ctx context.Context, anew bool) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := process.EndAll(c.Dir); err != nil {
		return err
	}
	var folders []string
	for n := range max(1, c.config.EtcdMembers) {
		folders = append(folders, string(Member(n+1)))
	}
	if anew {
		folders = append(folders, "pki")
	}
	for _, folder := range folders {
		if err := os.RemoveAll(filepath.Join(c.Dir, folder)); err != nil {
			return fmt.Errorf("emptying %s: %w", folder, err)
		}
	}
	if err := c.writeFiles(); err != nil {
		return err
	}
	return c.start(ctx)
}

// Pause suspends one process: connections stay open, nothing answers. Resume continues
// it.
func (c *Cluster) Pause(component Component) error {
	return process.Signal(c.Dir, string(component), true)
}

// Resume ends a Pause.
func (c *Cluster) Resume(component Component) error {
	return process.Signal(c.Dir, string(component), false)
}

// LogFile returns the path of the log of one process.
func (c *Cluster) LogFile(component Component) string {
	return filepath.Join(c.Dir, string(component)+".log")
}
