// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

var reviewsResource = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}

// Right is a resource or a single object on the hub, and what an agent must be allowed to do
// with it.
type Right struct {
	group, resource, subresource, namespace, name string
	verbs                                         []string
}

// String names the object in the style of kubectl auth can-i.
func (r Right) String() string {
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

// Bootstrap returns the rights a bootstrap kubeconfig needs.
func Bootstrap() []Right {
	return []Right{
		{group: clusterv1.GroupVersion.Group, resource: "managedclusters", verbs: []string{"create", "get"}},
		{group: "certificates.k8s.io", resource: "certificatesigningrequests", verbs: []string{"create", "get", "list", "watch"}},
	}
}

// AllSecrets returns the right to read the Secrets of all namespaces.
func AllSecrets() []Right { return []Right{{resource: "secrets", verbs: []string{"list"}}} }

// Hub returns the rights a cluster's agent needs.
func Hub(cluster string) []Right {
	event := []string{"create", "patch", "update"}
	return []Right{
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

// Answer is the hub's answer about a credential.
type Answer struct {
	// Problem is why the hub could not be asked; empty when it could.
	Problem string
	// Refused is true when the hub does not know the identity, or does not grant it the
	// rights in Missing.
	Refused bool
	Missing []string
}

// Granted reports whether the hub grants every right asked for.
func (a Answer) Granted() bool { return a.Problem == "" && !a.Refused }

// Ask checks each verb of each right; ctx bounds all checks together. The rights are asked for at
// the same time: one after another, a slow hub would not have answered in time, and would be taken
// for one that is away.
func Ask(ctx context.Context, hub dynamic.Interface, rights []Right) Answer {
	answers := make([]Answer, len(rights))
	var asking sync.WaitGroup
	for i, r := range rights {
		asking.Go(func() { answers[i] = r.ask(ctx, hub) })
	}
	asking.Wait()
	var out Answer
	for _, a := range answers {
		switch {
		case a.Refused && len(a.Missing) == 0:
			return Answer{Refused: true, Missing: []string{"the hub does not know the credential"}}
		case a.Problem != "" && out.Problem == "":
			out.Problem = a.Problem
		}
		out.Refused, out.Missing = out.Refused || a.Refused, append(out.Missing, a.Missing...)
	}
	if out.Problem != "" {
		return Answer{Problem: out.Problem}
	}
	return out
}

// ask checks each verb. Refused without anything missing means that the hub does not know the
// credential.
func (r Right) ask(ctx context.Context, hub dynamic.Interface) Answer {
	var out Answer
	for _, verb := range r.verbs {
		allowed, err := r.allowed(ctx, hub, verb)
		switch {
		case apierrors.IsUnauthorized(err):
			return Answer{Refused: true}
		case err != nil:
			return Answer{Problem: err.Error()}
		case !allowed:
			out.Refused, out.Missing = true, append(out.Missing, fmt.Sprintf("%s %s", verb, r))
		}
	}
	return out
}

func (r Right) allowed(ctx context.Context, hub dynamic.Interface, verb string) (bool, error) {
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1",
		"kind":       "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]any{
			"group": r.group, "resource": r.resource, "subresource": r.subresource,
			"namespace": r.namespace, "name": r.name, "verb": verb,
		}},
	}}
	answer, err := hub.Resource(reviewsResource).Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking the hub for rights: %w", err)
	}
	allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, nil
}
