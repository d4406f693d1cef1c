// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

const (
	// maxRequests is how many requests of one cluster a hub may hold before no
	// further one is made (registration.md 3.4).
	maxRequests = 10
	// throttleDelay is how soon their number is looked at again.
	throttleDelay = time.Minute
	// joinEvery is how long the ManagedCluster is believed to exist while
	// access is waited for; up to as much again is added at random.
	joinEvery = time.Hour
	// callTimeout bounds one request to a hub.
	callTimeout = 15 * time.Second
)

var clustersResource = schema.GroupVersionResource{Group: clusterv1.GroupVersion.Group, Version: "v1", Resource: "managedclusters"}

// execute does the step of a plan. The caches show the result sooner or later
// and bring the next pass.
func (c *Controller) execute(ctx context.Context, s State, p Plan) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch p.Step {
	case StepBegin:
		return c.begin(ctx, s, p)
	case StepJoin:
		return c.join(ctx, s)
	case StepAsk:
		return c.ask(ctx, s, p)
	case StepKeep:
		return c.keep(ctx, s)
	case StepRewrite:
		return c.rewrite(ctx, s)
	case StepPostpone:
		return c.postpone(ctx, s, p)
	case StepForget:
		return c.forget(ctx, s.Pending)
	case StepNone:
	}
	return nil
}

// begin keeps key and name of a request that does not exist yet.
func (c *Controller) begin(ctx context.Context, s State, p Plan) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	next := Pending{
		Request: s.Identity.Cluster + "-" + randomName(suffixLength), Key: key, Identity: s.Identity,
		Hub: s.target().ID(), Bootstrap: s.Bootstrap.Digest, Created: s.Now, Attempt: p.Attempt,
	}
	return c.write(ctx, clusterv1.SecretHubKubeconfigPending, s.Pending.Secret, next.data(), true)
}

// join creates the ManagedCluster unless it is there (registration.md 3.3).
func (c *Controller) join(ctx context.Context, s State) error {
	hub := c.bootstrap.Client.Resource(clustersResource)
	_, err := hub.Get(ctx, s.Identity.Cluster, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		err = c.createCluster(ctx, hub, s.Identity.Cluster)
	}
	if err != nil {
		return fmt.Errorf("joining the hub as %s: %w", s.Identity.Cluster, err)
	}
	c.joined = joined{at: s.Now, by: s.Bootstrap.Digest}
	return nil
}

func (c *Controller) createCluster(ctx context.Context, hub dynamic.ResourceInterface, name string) error {
	settings := c.current()
	cluster := &clusterv1.ManagedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: settings.Annotations},
	}
	for _, e := range settings.ExternalServerURLs {
		bundle := e.CABundle
		if len(bundle) == 0 {
			bundle = c.o.SpokeCA
		}
		cluster.Spec.ManagedClusterClientConfigs = append(cluster.Spec.ManagedClusterClientConfigs, clusterv1.ClientConfig{URL: e.URL, CABundle: bundle})
	}
	u, err := typed.ToUnstructured(cluster)
	if err != nil {
		return err
	}
	_, err = hub.Create(ctx, u, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsNotFound(err):
		return errNoHub
	}
	return err
}

// ask creates the request whose name and key are kept already.
func (c *Controller) ask(ctx context.Context, s State, p Plan) error {
	hub := c.link(p.Own).Client.Resource(requestsResource)
	others, err := hub.List(ctx, metav1.ListOptions{LabelSelector: requestLabels(s.Identity), Limit: maxRequests})
	if err != nil {
		return fmt.Errorf("counting certificate requests of %s: %w", s.Identity.Cluster, err)
	}
	if len(others.Items) >= maxRequests {
		return errThrottled
	}
	u, err := signingRequest(s.Pending, c.current().CertificateSeconds)
	if err != nil {
		return err
	}
	_, err = hub.Create(ctx, u, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		// Ours, from before a restart, or somebody else's of the same name.
		live, err := hub.Get(ctx, s.Pending.Request, metav1.GetOptions{})
		if err != nil || samePublicKey(live, s.Pending.Key) {
			return err
		}
		return c.begin(ctx, s, p)
	}
	if err != nil {
		return fmt.Errorf("creating certificate request %s: %w", s.Pending.Request, err)
	}
	return nil
}

// keep writes the issued certificate with all that belongs to it, at once.
func (c *Controller) keep(ctx context.Context, s State) error {
	text, err := s.target().Kept()
	if err != nil {
		return err
	}
	err = c.write(ctx, clusterv1.SecretHubKubeconfig, s.Kept.Secret, map[string][]byte{
		clusterv1.SecretKeyKubeconfig:  text,
		clusterv1.SecretKeyTLSCert:     s.Request.Certificate,
		clusterv1.SecretKeyTLSKey:      s.Pending.Key,
		clusterv1.SecretKeyClusterName: []byte(s.Identity.Cluster),
		clusterv1.SecretKeyAgentName:   []byte(s.Identity.Agent),
	}, false)
	if err != nil {
		return err
	}
	c.keptAt = s.Now
	return nil
}

func (c *Controller) rewrite(ctx context.Context, s State) error {
	text, err := s.target().Kept()
	if err != nil {
		return err
	}
	return c.write(ctx, clusterv1.SecretHubKubeconfig, s.Kept.Secret, map[string][]byte{clusterv1.SecretKeyKubeconfig: text}, false)
}

// postpone notes the denial, and forgets the key that nobody will sign.
func (c *Controller) postpone(ctx context.Context, s State, p Plan) error {
	next := s.Pending
	next.Request, next.Key, next.Attempt, next.Reason = "", nil, p.Attempt, p.Reason
	next.RetryAfter = s.Now.Add(retryDelay(p.Attempt))
	return c.write(ctx, clusterv1.SecretHubKubeconfigPending, s.Pending.Secret, next.data(), true)
}

func (c *Controller) forget(ctx context.Context, p Pending) error {
	uid, version := p.Secret.UID, p.Secret.ResourceVersion
	err := c.secrets().Delete(ctx, p.Secret.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing secret %s: %w", p.Secret.Name, err)
	}
	return nil
}

func (c *Controller) secrets() dynamic.ResourceInterface {
	return c.o.Spoke.Resource(secretsResource).Namespace(c.o.Namespace)
}

// write creates the secret, or replaces the one that was seen: all its content
// or only the given keys. Another writer in between is a conflict.
func (c *Controller) write(ctx context.Context, name string, seen *Secret, data map[string][]byte, all bool) error {
	content := map[string]any{}
	if seen != nil && !all {
		for key, value := range seen.Data {
			content[key] = base64.StdEncoding.EncodeToString(value)
		}
	}
	for key, value := range data {
		content[key] = base64.StdEncoding.EncodeToString(value)
	}
	if seen == nil {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": content}}
		u.SetName(name)
		u.SetNamespace(c.o.Namespace)
		u.SetLabels(c.o.Labels)
		if _, err := c.secrets().Create(ctx, u, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating secret %s: %w", name, err)
		}
		return nil
	}
	return c.replace(ctx, seen, content)
}

// replace puts the content into the secret that was seen; its labels and
// whatever else people set stay.
func (c *Controller) replace(ctx context.Context, seen *Secret, content map[string]any) error {
	live, err := c.secrets().Get(ctx, seen.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading secret %s: %w", seen.Name, err)
	}
	live.SetUID(seen.UID)
	live.SetResourceVersion(seen.ResourceVersion)
	live.Object["data"] = content
	if _, err := c.secrets().Update(ctx, live, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing secret %s: %w", seen.Name, err)
	}
	return nil
}

// raced tells whether a write to a secret failed because the cache was behind.
func raced(step Step, err error) bool {
	if step == StepJoin || step == StepAsk {
		return false
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}
