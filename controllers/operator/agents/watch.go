// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"slices"
	"strings"
	"time"

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
	accountsResource    = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	leasesResource      = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
)

// watchedSecrets are the names of the Secrets that the loop reads, in any namespace.
var watchedSecrets = []string{
	operatorv1.SecretBootstrapHubKubeconfig, operatorv1.SecretHubKubeconfig, operatorv1.SecretImagePull,
	operatorv1.SecretExternalManagedKubeconfig, registrationProcess.spokeSecret(), workProcess.spokeSecret(), wholeProcess.spokeSecret(),
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
	// Leaving is when its deletion began; zero while it stays.
	Leaving time.Time
}

func keepDeployment(u *unstructured.Unstructured) (Deployment, bool) {
	d := Deployment{
		Key: reconcile.KeyOf(u), Owner: u.GetLabels()[operatorv1.LabelCreatedByKlusterlet], Hash: u.GetAnnotations()[operatorv1.AnnotationSpecHash],
		UID: u.GetUID(), Generation: u.GetGeneration(), Wanted: 1,
	}
	if at := u.GetDeletionTimestamp(); at != nil {
		d.Leaving = at.Time
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

// Labelled is what is cached of an object with the labels of agents: a namespace, or one that the loop
// puts back.
type Labelled struct {
	Name    string
	Version string
	UID     types.UID
	// Klusterlet is the one whose agent a namespace is for, Owner the one that made the object.
	Klusterlet, Owner string
	// AddOns is true when a namespace asks for the image pull secret.
	AddOns, Leaving bool
}

func keepLabelled(u *unstructured.Unstructured) (Labelled, bool) {
	labels := u.GetLabels()
	n := Labelled{
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
	*site
	deployments, operator *watch.Collection[Deployment]
	// servers are the ports of API servers, and profiles is nil unless this process is an operator.
	servers  *watch.Collection[[]int64]
	profiles *watch.Collection[Profile]
}

func (c *Controller) newView() *view {
	o := c.config
	v := &view{site: newSite(siteOptions{
		client: o.Client, secrets: watchedSecrets, definitions: o.Definitions, version: o.Version, wakeAll: c.wakeAll, wake: c.wake, log: o.Log,
		policies: true,
	}), servers: c.newAPIServers()}
	v.deployments = watch.New(watch.Options[Deployment]{
		Client: o.Client, Resource: deploymentsResource, LabelSelector: operatorv1.LabelCreatedByKlusterlet, Log: o.Log, Keep: keepDeployment,
	})
	v.deployments.OnChange(func(reconcile.Key) { c.wakeAll() })
	v.operator = watch.New(watch.Options[Deployment]{
		Client: o.Client, Resource: deploymentsResource, Namespace: operatorv1.NamespaceOperator, FieldSelector: "metadata.name=" + operatorDeployment,
		Log: o.Log, Keep: keepDeployment,
	})
	v.operator.OnChange(func(reconcile.Key) { c.wakeAll() })
	if o.Own == "" {
		v.profiles = c.newProfiles()
	}
	return v
}

func (v *view) collections() []shared.Collection {
	out := append(v.site.collections(), v.deployments, v.operator, v.servers)
	if v.profiles != nil {
		out = append(out, v.profiles)
	}
	return out
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
