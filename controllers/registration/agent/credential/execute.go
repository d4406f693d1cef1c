// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

const (
	// throttleDelay is how soon the number of requests is looked at again.
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
		if err := c.ask(ctx, s, p); err != nil {
			return err
		}
		c.asked = request.Asked{Name: s.Pending.Request, At: c.o.Clock.Now()}
	case StepKeep:
		return c.keep(ctx, s)
	case StepTry:
		return c.try(ctx, s)
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
	key, err := request.NewKey()
	if err != nil {
		return err
	}
	if !p.Own {
		// Who lost its access may have lost its ManagedCluster, too.
		c.joined = joined{}
	}
	next := Pending{
		Pending:  request.Pending{Request: request.NewName(s.Identity.Cluster + "-"), Key: key, Attempt: p.Attempt, Reason: p.Reason},
		Identity: s.Identity, Hub: s.target().ID(), Bootstrap: s.Bootstrap.Digest,
	}
	return c.write(ctx, draft{name: clusterv1.SecretHubKubeconfigPending, seen: s.Pending.Secret, data: next.data(), all: true})
}

// join creates the ManagedCluster unless it is there (registration.md 3.3).
func (c *Controller) join(ctx context.Context, s State) error {
	hub := c.bootstrap.Client.Resource(clustersResource)
	live, err := hub.Get(ctx, s.Identity.Cluster, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		err = c.createCluster(ctx, hub, s.Identity.Cluster)
	case err == nil && live.GetDeletionTimestamp() != nil:
		err = errLeaving
	}
	if err != nil {
		return fmt.Errorf("joining the hub as %s: %w", s.Identity.Cluster, err)
	}
	c.joined = joined{at: s.Now, by: s.Bootstrap.Digest}
	return nil
}

func (c *Controller) createCluster(ctx context.Context, hub dynamic.ResourceInterface, name string) error {
	settings := c.Settings()
	cluster := &clusterv1.ManagedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: settings.Labels, Annotations: settings.Annotations},
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
	err := wanted(s.Pending, c.Settings().CertificateSeconds).Create(ctx, c.link(p.Own).Client, requestLabels(s.Identity))
	switch {
	case errors.Is(err, request.ErrThrottled):
		return errThrottled
	case errors.Is(err, request.ErrTaken):
		p.Attempt, p.Reason = p.Attempt+1, err.Error()
		return c.postpone(ctx, s, p)
	}
	return err
}

// keep writes the issued certificate with all that belongs to it, at once.
func (c *Controller) keep(ctx context.Context, s State) error {
	text, err := s.target().Kept()
	if err != nil {
		return err
	}
	hub := s.target().ID()
	if s.unusable() == "" {
		// A renewal: it is the hub that it was.
		hub = s.Kept.HubID()
	}
	err = c.write(ctx, draft{name: clusterv1.SecretHubKubeconfig, seen: s.Kept.Secret, hub: hub, data: map[string][]byte{
		clusterv1.SecretKeyKubeconfig:  text,
		clusterv1.SecretKeyTLSCert:     s.Request.Certificate,
		clusterv1.SecretKeyTLSKey:      s.Pending.Key,
		clusterv1.SecretKeyClusterName: []byte(s.Identity.Cluster),
		clusterv1.SecretKeyAgentName:   []byte(s.Identity.Agent),
	}})
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
	return c.write(ctx, draft{name: clusterv1.SecretHubKubeconfig, seen: s.Kept.Secret, hub: s.Kept.HubID(),
		data: map[string][]byte{clusterv1.SecretKeyKubeconfig: text}})
}

// postpone notes the denial, and forgets the key that nobody will sign.
func (c *Controller) postpone(ctx context.Context, s State, p Plan) error {
	next := s.Pending
	next.Request, next.Key, next.Attempt, next.Reason = "", nil, p.Attempt, p.Reason
	next.RetryAfter = s.Now.Add(request.RetryDelay(p.Attempt))
	return c.write(ctx, draft{name: clusterv1.SecretHubKubeconfigPending, seen: s.Pending.Secret, data: next.data(), all: true})
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

// draft is what a secret is to be: data is all its content, or some keys of it.
// Hub is what it notes of its hub; empty leaves that as it is.
type draft struct {
	name string
	seen *Secret
	data map[string][]byte
	all  bool
	hub  string
}

// write creates the secret, or replaces the one that was seen. Another writer in
// between is a conflict.
func (c *Controller) write(ctx context.Context, d draft) error {
	content := map[string]any{}
	if d.seen != nil && !d.all {
		for key, value := range d.seen.Data {
			content[key] = base64.StdEncoding.EncodeToString(value)
		}
	}
	for key, value := range d.data {
		content[key] = base64.StdEncoding.EncodeToString(value)
	}
	if d.seen == nil {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": content}}
		u.SetName(d.name)
		u.SetNamespace(c.o.Namespace)
		u.SetLabels(c.o.Labels)
		noteHub(u, d.hub)
		if _, err := c.secrets().Create(ctx, u, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating secret %s: %w", d.name, err)
		}
		return nil
	}
	return c.replace(ctx, d.seen, content, d.hub)
}

// noteHub puts the name of the hub on a secret, unless it is empty.
func noteHub(u *unstructured.Unstructured, hub string) {
	if hub == "" {
		return
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1.AnnotationHubID] = hub
	u.SetAnnotations(annotations)
}

// replace puts the content into the secret that was seen; its labels and
// whatever else people set stay.
func (c *Controller) replace(ctx context.Context, seen *Secret, content map[string]any, hub string) error {
	live, err := c.secrets().Get(ctx, seen.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading secret %s: %w", seen.Name, err)
	}
	live.SetUID(seen.UID)
	live.SetResourceVersion(seen.ResourceVersion)
	live.Object["data"] = content
	noteHub(live, hub)
	if _, err := c.secrets().Update(ctx, live, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing secret %s: %w", seen.Name, err)
	}
	return nil
}

// raced tells whether a write to a secret failed because the cache was behind.
func raced(step Step, err error) bool {
	if step == StepJoin || step == StepAsk || step == StepTry {
		return false
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}
