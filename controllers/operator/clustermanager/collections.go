// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var (
	managersResource    = operatorv1.GroupVersion.WithResource("clustermanagers")
	secretsResource     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configMapsResource  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deploymentsResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	mutatingResource    = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}
	validatingResource  = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
)

// Collections is what every replica watches: the ClusterManager, the serving certificates, the
// CA bundle of admission clients and the limits of connections.
type Collections struct {
	managers *watch.Collection[managed]
	secrets  map[string]*watch.Collection[stored]
	clients  *watch.Collection[stored]
	tls      *tlsLimits

	mu   sync.Mutex
	wake map[int]func()
	next int
}

// stored is what is kept of a Secret or ConfigMap of this hub.
type stored struct {
	version string
	pair    certs.Pair
	bundle  []byte
}

func byName(name string) string { return "metadata.name=" + name }

// NewCollections makes the collections that every replica watches. profile is in effect while
// there is no ConfigMap with another.
func NewCollections(client dynamic.Interface, profile observe.Profile, log logr.Logger) *Collections {
	c := &Collections{secrets: map[string]*watch.Collection[stored]{}, tls: watchLimits(client, profile, log)}
	c.managers = watch.New(watch.Options[managed]{
		Client: client, Resource: managersResource, FieldSelector: byName(hub.Name), Log: log, Keep: (&readable{}).keep,
	})
	for _, name := range servingSecrets() {
		c.secrets[name] = watchSecret(client, name, log)
	}
	c.clients = watchBundle(client, hub.AdmissionClients, log)
	c.managers.OnChange(func(reconcile.Key) { c.changed() })
	c.tls.watch.OnChange(func(reconcile.Key) { c.changed() })
	for _, s := range c.secrets {
		s.OnChange(func(reconcile.Key) { c.changed() })
	}
	return c
}

// Subscribe calls f at every change until stop is called. Leadership may be lost and regained
// while the collections run.
func (c *Collections) Subscribe(f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wake == nil {
		c.wake = map[int]func(){}
	}
	id := c.next
	c.next++
	c.wake[id] = f
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.wake, id)
	}
}

func (c *Collections) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.wake {
		f()
	}
}

func (c *Collections) list() []followed {
	out := []followed{c.managers, c.clients, c.tls.watch}
	for _, s := range c.secrets {
		out = append(out, s)
	}
	return out
}

func watchSecret(client dynamic.Interface, name string, log logr.Logger) *watch.Collection[stored] {
	return watch.New(watch.Options[stored]{
		Client: client, Resource: secretsResource, Namespace: hub.ComponentNamespace, FieldSelector: byName(name), Log: log,
		Keep: func(u *unstructured.Unstructured) (stored, bool) {
			s, err := typed.FromUnstructured[corev1.Secret](u)
			if err != nil {
				return stored{}, false
			}
			return stored{version: s.ResourceVersion, pair: certs.Pair{Cert: s.Data[corev1.TLSCertKey], Key: s.Data[corev1.TLSPrivateKeyKey]}}, true
		},
	})
}

// watchBundle watches a ConfigMap that holds a CA bundle.
func watchBundle(client dynamic.Interface, name string, log logr.Logger) *watch.Collection[stored] {
	return watch.New(watch.Options[stored]{
		Client: client, Resource: configMapsResource, Namespace: hub.ComponentNamespace, FieldSelector: byName(name), Log: log,
		Keep: func(u *unstructured.Unstructured) (stored, bool) {
			text, _, _ := unstructured.NestedString(u.Object, "data", operatorv1.ConfigMapKeyCABundle)
			return stored{version: u.GetResourceVersion(), bundle: []byte(text)}, true
		},
	})
}

// Clients returns the CA bundle that verifies the client certificates of API servers; found
// is false if no administrator has provided one.
func (c *Collections) Clients() (bundle []byte, found bool) {
	s, found := c.clients.Get(inHub(hub.AdmissionClients))
	return s.bundle, found
}

// TLS returns the limits of a connection that is accepted now.
func (c *Collections) TLS() observe.TLS { return c.tls.current().tls }

// Features returns the features that the ClusterManager enables, or the defaults while there
// is no ClusterManager.
func (c *Collections) Features() Features {
	var spec operatorv1.ClusterManagerSpec
	if cm, ok := c.managers.Get(reconcile.Key{Name: hub.Name}); ok {
		spec = cm.Spec
	}
	f, _, _ := parseFeatures(spec)
	return f
}

// Fill keeps the certificates in book up to date. It must be called before Run.
func (c *Collections) Fill(book *certs.Book, log logr.Logger) {
	for dns, name := range servingSecrets() {
		secrets := c.secrets[name]
		secrets.OnChange(func(k reconcile.Key) {
			s, ok := secrets.Get(k)
			switch {
			case !ok && (dns == PlacementName() || dns == ProxyName()):
				book.Drop(dns) // its gate is off
				return
			case !ok:
				// The last certificate is served until there is another.
				return
			}
			if err := book.Put(dns, s.pair); err != nil {
				log.Error(err, "Serving certificate cannot be used", "secret", name)
			}
		})
	}
}

// WaitSynced waits until the ClusterManager was looked for; it fails when ctx is done first.
func (c *Collections) WaitSynced(ctx context.Context) error { return c.managers.WaitSynced(ctx) }

// Run watches until ctx is done.
func (c *Collections) Run(ctx context.Context) error {
	return runAll(ctx, runsOf(c.list()))
}

// found is what is cached of an object that this loop applies.
type found struct {
	version, intent, release string
	// shared is true when another field manager owns parts of the object.
	shared bool
	// established is true for a CustomResourceDefinition that is served.
	established bool
	// content is the part of the object that is kept for comparison, and other is true when
	// its schemas are not those of this program.
	content map[string]any
	other   bool
}

func keepFound(u *unstructured.Unstructured) (found, bool) {
	f := found{
		version: u.GetResourceVersion(), intent: u.GetAnnotations()[clusterv1.AnnotationIntent], release: u.GetAnnotations()[operatorv1.AnnotationVersion],
		shared: !manager.SoleManager(u.GetManagedFields(), fieldManager),
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
			f.established = u.GetDeletionTimestamp() == nil
		}
	}
	return f, true
}

// hasIntent reports whether the object exists, was applied from the intent with this hash,
// and has no other field manager.
func (f found) hasIntent(intent string) bool {
	return f.version != "" && !f.shared && f.intent == intent
}

// readiness is what is cached of a Deployment.
type readiness struct {
	name              string
	wanted, available int32
	generation        int64
	// rolling is true while its pods are not those that it wants, and ours when it is a
	// component of this project's split layout.
	rolling, ours bool
	image         string
	pull          corev1.PullPolicy
	// pods are the pods of the hub's own Deployment.
	pods *shared.Pod
	// spec is the hash of the spec that was applied.
	spec string
}

func keepReadiness(u *unstructured.Unstructured) (readiness, bool) {
	d, err := typed.FromUnstructured[appsv1.Deployment](u)
	if err != nil {
		return readiness{}, false
	}
	r := readiness{name: d.Name, wanted: 1, available: d.Status.AvailableReplicas, generation: d.Generation, spec: d.Annotations[operatorv1.AnnotationSpecHash]}
	if d.Spec.Replicas != nil {
		r.wanted = *d.Spec.Replicas
	}
	r.rolling = d.Generation != d.Status.ObservedGeneration || d.Status.UpdatedReplicas != r.wanted || d.Status.ReadyReplicas != r.wanted
	r.ours = teardown.IsHubComponent(d)
	for i := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[i]; c.Name == hub.Name {
			r.image, r.pull, r.pods = c.Image, c.ImagePullPolicy, shared.ReadPod(u)
		}
	}
	return r, true
}

// leading holds the collections that only the leader watches.
type leading struct {
	signer      *watch.Collection[stored]
	bundle      *watch.Collection[stored]
	definitions *watch.Collection[found]
	mutating    *watch.Collection[found]
	validating  *watch.Collection[found]
	profiles    *watch.Collection[API]
	permissions *watch.Collection[API]
	accounts    *watch.Collection[API]
	// rival is the Deployment of another distribution's controller of ClusterPermissions.
	rival *watch.Collection[readiness]
	own   *watch.Collection[readiness]
	split *watch.Collection[readiness]
}

func newLeading(client dynamic.Interface, log logr.Logger) *leading {
	ours := operatorv1.LabelCreatedByClusterManager + "=" + hub.Name
	return &leading{
		signer:      watchSecret(client, operatorv1.SecretSigner, log),
		bundle:      watchBundle(client, operatorv1.ConfigMapCABundle, log),
		definitions: watch.New(watch.Options[found]{Client: client, Resource: definitionsResource, LabelSelector: ours, Keep: keepDefinition, Log: log}),
		mutating:    watch.New(watch.Options[found]{Client: client, Resource: mutatingResource, LabelSelector: ours, Keep: keepHook, Log: log}),
		validating:  watch.New(watch.Options[found]{Client: client, Resource: validatingResource, LabelSelector: ours, Keep: keepHook, Log: log}),
		profiles:    watchAPI(client, crd.ClusterProfiles, keepProfiles, log),
		permissions: watchAPI(client, crd.ClusterPermissions, keepPermissions, log),
		accounts:    watchAPI(client, crd.ManagedServiceAccounts, keepAccounts, log),
		rival: watch.New(watch.Options[readiness]{
			Client: client, Resource: deploymentsResource, Namespace: hub.Namespace, FieldSelector: byName(rival), Keep: keepReadiness, Log: log,
		}),
		own: watch.New(watch.Options[readiness]{
			Client: client, Resource: deploymentsResource, Namespace: hub.Namespace, FieldSelector: byName(hub.Name), Keep: keepReadiness, Log: log,
		}),
		split: watch.New(watch.Options[readiness]{Client: client, Resource: deploymentsResource, Namespace: hub.ComponentNamespace, Keep: keepReadiness, Log: log}),
	}
}

// watchAPI watches one definition.
func watchAPI(client dynamic.Interface, name string, keep func(*unstructured.Unstructured) (API, bool), log logr.Logger) *watch.Collection[API] {
	return watch.New(watch.Options[API]{Client: client, Resource: definitionsResource, FieldSelector: byName(name), Keep: keep, Log: log})
}

func (l *leading) list() []followed {
	return []followed{l.signer, l.bundle, l.definitions, l.mutating, l.validating, l.profiles, l.permissions, l.accounts, l.rival, l.own, l.split}
}

// onChange calls f when anything in the collections changes.
func (l *leading) onChange(f func(reconcile.Key)) {
	for _, one := range l.list() {
		one.OnChange(f)
	}
}
