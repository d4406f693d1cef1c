// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// startTimeout bounds the time until the node of a cluster is ready.
const startTimeout = 3 * time.Minute

// apiserverPort is where kube-apiserver listens.
const apiserverPort = 6443

// clusterName is the form that the names of nodes, interfaces and folders allow.
var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

// Options describe a cluster to start.
type Options struct {
	// Name of the cluster: its node, its kubeconfig context, its certificate
	// authority. A DNS label of at most 32 characters.
	Name string
	// Images are OCI archives that are loaded into the node.
	Images []string
	// SigningDuration is the lifetime of certificates issued for a
	// CertificateSigningRequest, in whole seconds; kube-controller-manager backdates them
	// by five minutes. Zero is its default of one year.
	SigningDuration time.Duration
}

// Component names one program of a cluster.
type Component string

// The programs of a cluster.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Containerd        Component = "containerd"
	Kubelet           Component = "kubelet"
	Proxy             Component = "kube-proxy"
)

// Components returns every program of a cluster.
func Components() []Component {
	return []Component{Etcd, APIServer, ControllerManager, Scheduler, Containerd, Kubelet, Proxy}
}

// Way is an address of kube-apiserver and the authority to trust there.
type Way struct {
	// Server is its URL on the fabric.
	Server string
	// CA is the certificate authority in PEM, and CAFile a file with it.
	CA     []byte
	CAFile string
}

// Cluster is a running cluster with one node.
type Cluster struct {
	// Name is that of the options.
	Name string
	// Address is that of the node, and of kube-apiserver, on the fabric.
	Address string
	// Server is the URL of kube-apiserver on the fabric.
	Server string
	// CA is the certificate authority in PEM.
	CA []byte
	// Elsewhere is a second way to the same kube-apiserver: another address on the
	// fabric, with a certificate of another authority, like a new load balancer.
	Elsewhere Way
	// Kubeconfig is the path of the administrator's kubeconfig file. Its server
	// is reachable from inside only; see Exec.
	Kubeconfig string
	// Config is the administrator's client configuration for this process: connections
	// are opened from inside, without a rate limit.
	Config *rest.Config

	fabric  *Fabric
	options Options
	index   int
	cell    *cell
	dir     string
	http    *http.Client
	client  dynamic.Interface

	mutex   sync.Mutex
	running map[Component]*process.Process
}

// Start starts a cluster and returns when its node is ready and its images are
// loaded. After an error nothing of the cluster is left.
func (f *Fabric) Start(ctx context.Context, options Options) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c, err := f.reserve(options)
	if err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting cluster %s: %w", c.Name, err), c.Stop())
	}
	return c, nil
}

// reserve assigns the cluster an index and addresses on the fabric.
func (f *Fabric) reserve(options Options) (*Cluster, error) {
	if !clusterName.MatchString(options.Name) || options.Name == "switch" {
		return nil, fmt.Errorf("starting cluster %q: that is no name for a cluster", options.Name)
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if len(f.clusters) == maxClusters {
		return nil, fmt.Errorf("starting cluster %s: the fabric has %d clusters already", options.Name, maxClusters)
	}
	if slices.ContainsFunc(f.clusters, func(other *Cluster) bool { return other.Name == options.Name }) {
		return nil, fmt.Errorf("starting cluster %s: the fabric has a cluster of that name", options.Name)
	}
	index := 1
	for slices.ContainsFunc(f.clusters, func(other *Cluster) bool { return other.index == index }) {
		index++
	}
	address := fmt.Sprintf("10.210.0.%d", 10+index)
	c := &Cluster{
		Name: options.Name, Address: address, Server: fmt.Sprintf("https://%s:%d", address, apiserverPort),
		fabric: f, options: options, index: index, dir: filepath.Join(f.dir, options.Name),
		running: map[Component]*process.Process{},
	}
	f.clusters = append(f.clusters, c)
	return c, nil
}

// start starts everything, independent parts in parallel.
func (c *Cluster) start(ctx context.Context) error {
	var err error
	if c.cell, err = c.fabric.openCell(ctx, c.Name, c.dir, c.cgroup()); err != nil {
		return err
	}
	if err := c.plug(ctx); err != nil {
		return err
	}
	if err := errors.Join(c.writeIdentities(), c.writeSettings()); err != nil {
		return err
	}
	for _, component := range []Component{Containerd, Etcd, APIServer} {
		if err := c.launch(ctx, component); err != nil {
			return err
		}
	}
	for _, component := range []Component{ControllerManager, Scheduler, Kubelet, Proxy} {
		if err := c.spawn(component); err != nil {
			return err
		}
	}
	for _, image := range append([]string{filepath.Join(c.fabric.dir, "pause.tar")}, c.options.Images...) {
		if err := c.Load(ctx, image); err != nil {
			return err
		}
	}
	if err := c.publish(ctx); err != nil {
		return err
	}
	return c.awaitNode(ctx)
}

// Stop ends the cluster and removes all traces of it: the kernel ends all processes of
// the cell at once. It may be called more than once.
func (c *Cluster) Stop() error {
	c.fabric.mutex.Lock()
	c.fabric.clusters = slices.DeleteFunc(c.fabric.clusters, func(other *Cluster) bool { return other == c })
	c.fabric.mutex.Unlock()
	if err := c.cell.close(); err != nil {
		return fmt.Errorf("stopping cluster %s: %w", c.Name, err)
	}
	return nil
}

func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c *Cluster) pki(name string) string { return filepath.Join(c.dir, "pki", name) }

// cgroup returns the name of the control group that holds the pods of this cluster, in
// every hierarchy.
func (c *Cluster) cgroup() string { return filepath.Base(c.fabric.dir) + "-" + c.Name }

func (c *Cluster) podRange() string { return fmt.Sprintf("10.%d.0.0/24", 210+c.index) }

func (c *Cluster) serviceRange() string { return fmt.Sprintf("10.%d.0.0/24", 110+c.index) }

// firstService returns the address of the Service "kubernetes".
func (c *Cluster) firstService() string { return fmt.Sprintf("10.%d.0.1", 110+c.index) }

// platform returns the platform of this machine, as images name it.
func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }
