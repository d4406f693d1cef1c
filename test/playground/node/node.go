// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typeddiscoveryv1 "k8s.io/client-go/kubernetes/typed/discovery/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/egress"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// Folders of the process node below Config.Dir.
const (
	podsFolder = "pods"
	logsFolder = "logs"
)

// fieldManager of what the process node writes.
const fieldManager = "process-node"

// kubeletPort is the port on which the node serves logs, as kube-apiserver sees it.
const kubeletPort = 10250

// Address returns the node's virtual address, which is in its serving certificate.
func Address() net.IP { return net.ParseIP(nodeAddress) }

// Config describes the node. The process reads it from a JSON file.
type Config struct {
	// Name of the Node object.
	Name string `json:"name"`
	// Version is the Kubernetes version that the node reports, which is the cluster's.
	Version string `json:"version"`
	// Dir holds pods/ and logs/, and is the process's working directory.
	Dir string `json:"dir"`
	// Kubeconfig of an administrator: the node is also scheduler and proxy.
	Kubeconfig string `json:"kubeconfig"`
	// Images maps the last part of an image's repository to a program.
	Images map[string]string `json:"images"`
	// Socket is the unix socket of the egress proxy for kube-apiserver, relative to Dir.
	// It exists when the node is ready.
	Socket string `json:"socket"`
	// Serving is the certificate of the log endpoint, ClientCA the file of the authority
	// of kube-apiserver's client certificate.
	Serving  pki.Pair `json:"serving"`
	ClientCA string   `json:"clientCA"`
	// Clock is the real one if nil.
	Clock clock.WithTicker `json:"-"`
}

// manager holds what all parts of the node share.
type manager struct {
	config Config
	server struct{ host, port string }

	// One client for each group: the clientset of all groups is a quarter of a program.
	core         typedcorev1.CoreV1Interface
	coordination typedcoordinationv1.CoordinationV1Interface
	discovery    typeddiscoveryv1.DiscoveryV1Interface

	pods     corelisters.PodLister
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
	sources  sources
	recorder record.EventRecorder
	network  *network
	unbound  workqueue.TypedRateLimitingInterface[types.NamespacedName]

	kubelet int // loopback port of the log endpoint

	mu      sync.Mutex
	workers map[types.UID]*worker
	running sync.WaitGroup
}

// Run runs the process node until ctx ends. All its pods end with it.
func Run(ctx context.Context, c Config) error {
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	m, err := newManager(c)
	if err != nil {
		return fmt.Errorf("preparing process node %s: %w", c.Name, err)
	}
	if err := m.run(ctx); err != nil {
		return fmt.Errorf("running process node %s: %w", c.Name, err)
	}
	return nil
}

// Clear ends the pods that a process of the node with this Config.Dir left running, and removes
// what they and it have written. That process has ended.
func Clear(dir string) error {
	return errors.Join(clearPods(dir), os.RemoveAll(filepath.Join(dir, logsFolder)))
}

// clearPods ends what an earlier process of this node left running. Its logs stay.
func clearPods(dir string) error {
	pods := filepath.Join(dir, podsFolder)
	return errors.Join(process.EndAll(pods), os.RemoveAll(pods))
}

func newManager(c Config) (*manager, error) {
	if err := clearPods(c.Dir); err != nil {
		return nil, err
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(c.Dir, podsFolder), 0o700), os.MkdirAll(filepath.Join(c.Dir, logsFolder), 0o700)); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, err
	}
	m := &manager{config: c, network: newNetwork(), workers: map[types.UID]*worker{}}
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, err
	}
	m.server.host, m.server.port = server.Hostname(), server.Port()
	config.QPS, config.UserAgent = -1, fieldManager
	config.ContentConfig = rest.ContentConfig{
		ContentType:        "application/vnd.kubernetes.protobuf",
		AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
	}
	if err := m.connect(config); err != nil {
		return nil, err
	}
	m.unbound = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]())
	return m, nil
}

// connect makes the clients; they share one connection.
func (m *manager) connect(config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	if m.core, err = typedcorev1.NewForConfigAndClient(config, client); err != nil {
		return err
	}
	if m.coordination, err = typedcoordinationv1.NewForConfigAndClient(config, client); err != nil {
		return err
	}
	m.discovery, err = typeddiscoveryv1.NewForConfigAndClient(config, client)
	return err
}

// run starts the parts, in the order in which they need each other.
func (m *manager) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	part := func(name string, f func(context.Context) error) {
		m.running.Go(func() {
			if err := f(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	defer m.running.Wait()
	defer cancel(nil)
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: m.core.Events("")})
	m.recorder = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: fieldManager, Host: m.config.Name})

	logs, err := m.listenLogs(ctx)
	if err != nil {
		return err
	}
	part("serving logs", logs)
	informers, err := m.watch(ctx)
	if err != nil {
		return err
	}
	for _, informer := range informers {
		m.running.Go(func() { informer.RunWithContext(ctx) })
	}
	for _, informer := range informers {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return fmt.Errorf("reading what pods are made of: %w", context.Cause(ctx))
		}
	}
	part("binding pods", m.bind)
	if err := m.register(ctx); err != nil {
		return err
	}
	part("renewing the lease", m.heartbeat)
	socket, err := m.listenEgress(ctx)
	if err != nil {
		return err
	}
	part("serving egress", func(ctx context.Context) error {
		return egress.Proxy{Resolve: m.resolve, Clock: m.config.Clock}.Serve(ctx, socket)
	})
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

func (m *manager) listenEgress(ctx context.Context) (net.Listener, error) {
	if err := os.RemoveAll(filepath.Join(m.config.Dir, m.config.Socket)); err != nil {
		return nil, err
	}
	var config net.ListenConfig
	return config.Listen(ctx, "unix", m.config.Socket)
}

// watch prepares the caches of everything that pods are made of.
func (m *manager) watch(ctx context.Context) ([]cache.SharedIndexInformer, error) {
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	var all []cache.SharedIndexInformer
	var failed []error
	of := func(client rest.Interface, resource string, kind runtime.Object, changed func(any)) cache.Indexer {
		source := cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything())
		informer := cache.NewSharedIndexInformer(source, kind, 0, byNamespace)
		failed = append(failed, informer.SetTransform(strip))
		if changed != nil {
			_, err := informer.AddEventHandler(handler(changed))
			failed = append(failed, err)
		}
		all = append(all, informer)
		return informer.GetIndexer()
	}
	core := m.core.RESTClient()
	m.pods = corelisters.NewPodLister(of(core, "pods", &corev1.Pod{}, func(object any) { m.podChanged(ctx, object) }))
	m.services = corelisters.NewServiceLister(of(core, "services", &corev1.Service{}, nil))
	m.slices = discoverylisters.NewEndpointSliceLister(of(m.discovery.RESTClient(), "endpointslices", &discoveryv1.EndpointSlice{}, nil))
	secrets := corelisters.NewSecretLister(of(core, "secrets", &corev1.Secret{}, m.contentChanged))
	configMaps := corelisters.NewConfigMapLister(of(core, "configmaps", &corev1.ConfigMap{}, m.contentChanged))
	m.sources = sources{
		secret: func(namespace, name string) (*corev1.Secret, error) { return secrets.Secrets(namespace).Get(name) },
		configMap: func(namespace, name string) (*corev1.ConfigMap, error) {
			return configMaps.ConfigMaps(namespace).Get(name)
		},
	}
	return all, errors.Join(failed...)
}

// handler calls f for every change, deletions included.
func handler(f func(any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    f,
		UpdateFunc: func(_, object any) { f(object) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			f(object)
		},
	}
}

// strip drops fields that are never read, to save memory.
func strip(object any) (any, error) {
	if accessor, err := apimeta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// podChanged hands a pod to the binder or to its worker.
func (m *manager) podChanged(ctx context.Context, object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	if pod.Spec.NodeName == "" {
		m.unbound.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		return
	}
	if pod.Spec.NodeName != m.config.Name {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.workers[pod.UID]; w != nil {
		w.wake()
		return
	}
	if current, err := m.pods.Pods(pod.Namespace).Get(pod.Name); err != nil || current.UID != pod.UID || ctx.Err() != nil {
		return // the event reports its removal
	}
	w := m.newWorker(pod)
	m.workers[pod.UID] = w
	m.running.Go(func() {
		w.run(ctx)
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.workers, w.uid)
	})
}

// contentChanged wakes the pods of a namespace whose Secret or ConfigMap changed.
func (m *manager) contentChanged(object any) {
	accessor, err := apimeta.Accessor(object)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.workers {
		if w.key.Namespace == accessor.GetNamespace() {
			w.wake()
		}
	}
}

// resolve finds the loopback port behind an address of the cluster's network.
func (m *manager) resolve(host string, port int) (int, error) {
	if host == nodeAddress && port == kubeletPort {
		return m.kubelet, nil
	}
	services, err := m.services.List(labels.Everything())
	if err != nil {
		return 0, err
	}
	slices, err := m.slices.List(labels.Everything())
	if err != nil {
		return 0, err
	}
	for _, s := range services {
		if s.Namespace == corev1.NamespaceDefault && s.Name == "kubernetes" && s.Spec.ClusterIP == host {
			return strconv.Atoi(m.server.port)
		}
	}
	target, found, err := routeService(services, slices, host, int32(port))
	if err != nil {
		return 0, err
	}
	if !found {
		target = endpoint{address: host, port: int32(port)}
	}
	return m.network.lookup(target.address, target.port)
}

func (m *manager) logFile(namespace, pod, container string) string {
	return filepath.Join(m.config.Dir, logsFolder, namespace+"_"+pod+"_"+container+".log")
}
