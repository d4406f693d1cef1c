// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

var (
	klusterletsResource = schema.GroupVersionResource{Group: operatorv1.GroupVersion.Group, Version: "v1", Resource: "klusterlets"}
	deploymentsResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	namespacesResource  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	leasesResource      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
)

// restored are the kinds of objects that the loop puts back when others change them, besides
// Deployments and namespaces.
var restored = []schema.GroupVersionResource{
	{Version: "v1", Resource: "serviceaccounts"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
}

// watchedSecrets are the names of the Secrets that the loop reads, in any namespace.
var watchedSecrets = []string{
	operatorv1.SecretBootstrapHubKubeconfig, operatorv1.SecretHubKubeconfig, operatorv1.SecretImagePull,
}

// Deployment is what is cached of a Deployment with the label of a Klusterlet.
type Deployment struct {
	Key reconcile.Key
	// Owner is the Klusterlet of the label; Runs is the one that it serves with a process of
	// its own ("ocm-agent run"), empty for any other Deployment.
	Owner, Runs string
	// Hash is that of the spec when it was last written; Image is that of its first container.
	Hash, Image string
	UID         types.UID
	Generation  int64
	// Wanted and Available are numbers of replicas.
	Wanted, Available int64
}

func keepDeployment(u *unstructured.Unstructured) (Deployment, bool) {
	d := Deployment{
		Key: reconcile.KeyOf(u), Owner: u.GetLabels()[operatorv1.LabelCreatedByKlusterlet], Hash: u.GetAnnotations()[operatorv1.AnnotationSpecHash],
		UID: u.GetUID(), Generation: u.GetGeneration(), Wanted: 1,
	}
	if n, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas"); found {
		d.Wanted = n
	}
	d.Available, _, _ = unstructured.NestedInt64(u.Object, "status", "availableReplicas")
	if seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration"); seen < d.Generation {
		// The status is that of an earlier spec.
		d.Available = 0
	}
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if len(containers) > 0 {
		first, _ := containers[0].(map[string]any)
		d.Image, _ = first["image"].(string)
		args, _, _ := unstructured.NestedStringSlice(first, "args")
		d.Runs = runs(args)
	}
	return d, true
}

// runs returns the Klusterlet that a process with these arguments serves in itself; empty if none.
func runs(args []string) string {
	if len(args) == 0 || args[0] != "run" {
		return ""
	}
	for i, a := range args {
		if name, ok := strings.CutPrefix(a, "--klusterlet="); ok {
			return name
		}
		if a == "--klusterlet" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return operatorv1.DefaultKlusterletName
}

// Namespace is what is cached of a namespace.
type Namespace struct {
	Name    string
	Version string
	UID     types.UID
	// Klusterlet is the one whose agent the namespace is for, Owner the one that made it.
	Klusterlet, Owner string
	// AddOns is true when the namespace asks for the image pull secret.
	AddOns, Leaving bool
}

func keepNamespace(u *unstructured.Unstructured) (Namespace, bool) {
	labels := u.GetLabels()
	n := Namespace{
		Name: u.GetName(), Version: u.GetResourceVersion(), UID: u.GetUID(), Klusterlet: labels[operatorv1.LabelKlusterlet],
		Owner: labels[operatorv1.LabelCreatedByKlusterlet], AddOns: labels[operatorv1.LabelAddOnNamespace] == "true",
		Leaving: u.GetDeletionTimestamp() != nil,
	}
	return n, n.Klusterlet != "" || n.Owner != "" || n.AddOns
}

// Secret is what is cached of a Secret.
type Secret struct {
	Namespace string
	Version   string
	UID       types.UID
	Type      string
	// Owner is the Klusterlet of the label.
	Owner string
	Data  map[string][]byte
}

func keepSecret(u *unstructured.Unstructured) (Secret, bool) {
	kind, _, _ := unstructured.NestedString(u.Object, "type")
	return Secret{
		Namespace: u.GetNamespace(), Version: u.GetResourceVersion(), UID: u.GetUID(), Type: kind, Owner: u.GetLabels()[operatorv1.LabelCreatedByKlusterlet],
		Data: request.SecretData(u),
	}, true
}

// NewKlusterlets watches the Klusterlets of a cluster, except own, which may be empty.
func NewKlusterlets(client dynamic.Interface, own string, log logr.Logger) *watch.Collection[settings.Seen] {
	o := watch.Options[settings.Seen]{Client: client, Resource: klusterletsResource, Log: log, Keep: settings.Keep(log)}
	if own != "" {
		o.FieldSelector = "metadata.name!=" + own
	}
	return watch.New(o)
}

// view is what the loop watches while there are Klusterlets to serve.
type view struct {
	deployments, operator *watch.Collection[Deployment]
	namespaces            *watch.Collection[Namespace]
	secrets               map[string]*watch.Collection[Secret]
	restored              map[schema.GroupVersionResource]*watch.Collection[string]
	shared                *shared.Watch
	// owners remembers the Klusterlet of the label of each object, which is gone when the object
	// is.
	owners sync.Map
}

func (c *Controller) newView() *view {
	o := c.config
	v := &view{secrets: map[string]*watch.Collection[Secret]{}, restored: map[schema.GroupVersionResource]*watch.Collection[string]{}}
	v.shared = shared.NewWatch(o.Client, o.Definitions, o.Version, c.wakeAll, o.Log)
	v.deployments = watch.New(watch.Options[Deployment]{
		Client: o.Client, Resource: deploymentsResource, LabelSelector: operatorv1.LabelCreatedByKlusterlet, Log: o.Log, Keep: keepDeployment,
	})
	v.deployments.OnChange(func(reconcile.Key) { c.wakeAll() })
	v.operator = watch.New(watch.Options[Deployment]{
		Client: o.Client, Resource: deploymentsResource, Namespace: operatorv1.NamespaceOperator, FieldSelector: "metadata.name=" + operatorDeployment,
		Log: o.Log, Keep: keepDeployment,
	})
	v.operator.OnChange(func(reconcile.Key) { c.wakeAll() })
	v.namespaces = watch.New(watch.Options[Namespace]{Client: o.Client, Resource: namespacesResource, Log: o.Log, Keep: keepNamespace})
	v.namespaces.OnChange(func(reconcile.Key) { c.wakeAll() })
	for _, name := range watchedSecrets {
		v.secrets[name] = watch.New(watch.Options[Secret]{
			Client: o.Client, Resource: request.Secrets, FieldSelector: "metadata.name=" + name, Log: o.Log, Keep: keepSecret,
		})
		v.secrets[name].OnChange(func(reconcile.Key) { c.wakeAll() })
	}
	for _, resource := range restored {
		list := watch.New(watch.Options[string]{
			Client: o.Client, Resource: resource, LabelSelector: operatorv1.LabelCreatedByKlusterlet, Log: o.Log,
			Keep: func(u *unstructured.Unstructured) (string, bool) {
				v.owners.Store(reconcile.KeyOf(u), u.GetLabels()[operatorv1.LabelCreatedByKlusterlet])
				return u.GetResourceVersion(), true
			},
		})
		list.OnChange(func(key reconcile.Key) {
			if owner, ok := v.owners.Load(key); ok {
				c.queue.Add(reconcile.Key{Name: owner.(string)})
			}
		})
		v.restored[resource] = list
	}
	return v
}

// collection is what the loop runs of a watch.Collection.
type collection interface {
	Run(ctx context.Context) error
	Synced() <-chan struct{}
	Err() error
}

func (v *view) collections() []collection {
	out := []collection{v.deployments, v.operator, v.namespaces}
	for _, s := range v.secrets {
		out = append(out, s)
	}
	for _, r := range v.restored {
		out = append(out, r)
	}
	return out
}

// problem returns why not everything has been read yet; known is true once it has.
func (v *view) problem() (text string, known bool) {
	known = true
	for _, one := range v.collections() {
		select {
		case <-one.Synced():
		default:
			known = false
			if err := one.Err(); err != nil {
				text = cmp.Or(text, err.Error())
			}
		}
	}
	return text, known
}

// ownRun returns the Klusterlets that processes of their own serve, the default one first: of
// several such processes, the one of the first installs the agents of the others.
func (v *view) ownRun() []string {
	var out []string
	for _, d := range v.deployments.List() {
		if d.Runs != "" {
			out = append(out, d.Runs)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if (a == operatorv1.DefaultKlusterletName) != (b == operatorv1.DefaultKlusterletName) {
			if a == operatorv1.DefaultKlusterletName {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	return slices.Compact(out)
}
