// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/kubeconfig"
)

var reviewsResource = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}

// accessTimeout bounds all questions about one kubeconfig.
const accessTimeout = 10 * time.Second

// right is one thing that an agent must be allowed to do on the hub.
type right struct {
	group, resource, subresource, namespace, name string
	verbs                                         []string
}

func (r right) String() string {
	s := r.resource
	if r.subresource != "" {
		s += "/" + r.subresource
	}
	if r.group != "" {
		s += "." + r.group
	}
	if r.name != "" {
		s += " " + r.name
	}
	return s
}

// bootstrapRights are those of a bootstrap kubeconfig (registration.md 3.6).
func bootstrapRights() []right {
	return []right{
		{group: clusterv1.GroupVersion.Group, resource: "managedclusters", verbs: []string{"create", "get"}},
		{group: "certificates.k8s.io", resource: "certificatesigningrequests", verbs: []string{"create", "get", "list", "watch"}},
	}
}

// hubRights are those of the agent of a cluster (registration.md 3.6).
func hubRights(cluster string) []right {
	event := []string{"create", "patch", "update"}
	return []right{
		{group: "certificates.k8s.io", resource: "certificatesigningrequests", verbs: []string{"get", "list", "watch"}},
		{group: clusterv1.GroupVersion.Group, resource: "managedclusters", name: cluster, verbs: []string{"get", "list", "update", "watch"}},
		{group: clusterv1.GroupVersion.Group, resource: "managedclusters", subresource: "status", name: cluster, verbs: []string{"patch", "update"}},
		{group: clusterv1.RegisterGroup, resource: "managedclusters", subresource: clusterv1.SubresourceClientCertificates, verbs: []string{"renew"}},
		{group: "coordination.k8s.io", resource: "leases", namespace: cluster, name: clusterv1.LeaseName, verbs: []string{"get", "update"}},
		{resource: "events", namespace: cluster, verbs: event},
		{group: "events.k8s.io", resource: "events", namespace: cluster, verbs: event},
		{group: "work.open-cluster-management.io", resource: "manifestworks", namespace: cluster, verbs: []string{"get", "list", "watch", "update"}},
		{group: "work.open-cluster-management.io", resource: "manifestworks", subresource: "status", namespace: cluster, verbs: []string{"patch", "update"}},
	}
}

// asker asks a hub about a kubeconfig, and remembers the answer until the
// kubeconfig changes; a refusal or a failure only for a while.
type asker struct {
	clock     clock.PassiveClock
	userAgent string
	// brief remembers a consent only for a while, too: a token expires.
	brief bool

	about string
	at    time.Time
	last  Access
}

// forget makes the next question go to the hub unless all was granted.
func (a *asker) forget() {
	if !a.last.granted() {
		a.about = ""
	}
}

// ask tells what the hub grants to the credential of c; about identifies it.
func (a *asker) ask(ctx context.Context, about string, c *kubeconfig.Config, rights []right) Access {
	fresh := (a.last.granted() && !a.brief) || a.clock.Since(a.at) < unauthorizedRetry
	if a.about == about && fresh {
		return a.last
	}
	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	a.about, a.at, a.last = about, a.clock.Now(), a.question(ctx, c, rights)
	return a.last
}

func (a *asker) question(ctx context.Context, c *kubeconfig.Config, rights []right) Access {
	link, err := agent.NewLink(c, a.userAgent)
	if err != nil {
		return Access{Problem: err.Error()}
	}
	defer link.Close()
	var out Access
	for _, r := range rights {
		for _, verb := range r.verbs {
			allowed, err := r.allowed(ctx, link, verb)
			switch {
			case apierrors.IsUnauthorized(err):
				return Access{Refused: true, Missing: []string{"the hub does not know the credential"}}
			case err != nil:
				return Access{Problem: err.Error()}
			case !allowed:
				out.Refused, out.Missing = true, append(out.Missing, fmt.Sprintf("%s %s", verb, r))
			}
		}
	}
	return out
}

func (r right) allowed(ctx context.Context, link *agent.Link, verb string) (bool, error) {
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1",
		"kind":       "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]any{
			"group": r.group, "resource": r.resource, "subresource": r.subresource,
			"namespace": r.namespace, "name": r.name, "verb": verb,
		}},
	}}
	answer, err := link.Client.Resource(reviewsResource).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking the hub for rights: %w", err)
	}
	allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, nil
}
