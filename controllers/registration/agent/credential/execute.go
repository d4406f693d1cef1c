// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

const (
	// throttleDelay is how soon the number of requests is checked again.
	throttleDelay = time.Minute
	// joinEvery is how long the ManagedCluster is assumed to exist while waiting for access;
	// up to as much again is added per cluster.
	joinEvery = time.Hour
	// callTimeout bounds one request to a hub.
	callTimeout = 15 * time.Second
)

var clustersResource = schema.GroupVersionResource{Group: clusterv1.GroupVersion.Group, Version: "v1", Resource: "managedclusters"}

// execute performs the step of a plan. The caches eventually show the result, which triggers
// the next pass.
func (c *Controller) execute(ctx context.Context, s State, p Plan) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch p.Step {
	case request.StepBegin:
		return c.beginRequest(ctx, s, p)
	case request.StepRestart:
		if err := request.ConfirmGone(ctx, c.link(p.Own).Client, s.Pending.Request); err != nil {
			return err
		}
		return c.beginRequest(ctx, s, p)
	case stepJoin:
		return c.joinHub(ctx, s)
	case request.StepAsk:
		if err := c.createRequest(ctx, s, p); err != nil {
			return err
		}
		c.asked = request.Asked{Name: s.Pending.Request, At: c.config.Clock.Now()}
	case request.StepKeep:
		return c.keepCertificate(ctx, s)
	case stepTry:
		return c.tryMoved(ctx, s)
	case request.StepRewrite:
		return c.rewrite(ctx, s)
	case request.StepPostpone:
		return c.postpone(ctx, s, p)
	case request.StepForget:
		return s.Pending.Secret.seen().Remove(ctx, c.secrets())
	case request.StepNone:
	}
	return nil
}

// beginRequest stores the key and name of a request that does not exist yet.
func (c *Controller) beginRequest(ctx context.Context, s State, p Plan) error {
	begun, err := request.Begin(s.Identity.Cluster+"-", p.Attempt, p.Reason)
	if err != nil {
		return err
	}
	if !p.Own {
		// An agent that lost its access may have lost its ManagedCluster too.
		c.joined = joined{}
	}
	return c.writePending(ctx, s, Pending{Pending: begun, Identity: s.Identity, Hub: s.target().ID(), Bootstrap: s.Bootstrap.Digest})
}

// writePending writes the whole pending secret.
func (c *Controller) writePending(ctx context.Context, s State, p Pending) error {
	return c.writeSecret(ctx, draft{name: clusterv1.SecretHubKubeconfigPending, seen: s.Pending.Secret, data: p.data(), all: true})
}

// joinHub creates the ManagedCluster unless it exists.
func (c *Controller) joinHub(ctx context.Context, s State) error {
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
			bundle = c.config.SpokeCA
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

// createRequest creates the request whose name and key are already stored.
func (c *Controller) createRequest(ctx context.Context, s State, p Plan) error {
	err := newRequest(s.Pending, c.Settings().CertificateSeconds).Create(ctx, c.link(p.Own).Client, requestLabels(s.Identity))
	switch {
	case errors.Is(err, request.ErrThrottled):
		return errThrottled
	case errors.Is(err, request.ErrTaken):
		p.Attempt, p.Reason = p.Attempt+1, err.Error()
		return c.postpone(ctx, s, p)
	}
	return err
}

// keepCertificate stores the issued certificate and everything that belongs to it in one write.
func (c *Controller) keepCertificate(ctx context.Context, s State) error {
	text, err := s.target().Kept()
	if err != nil {
		return err
	}
	hub := s.target().ID()
	if s.unusable() == "" {
		// A renewal: the hub is still the same.
		hub = s.Kept.HubID()
	}
	err = c.writeSecret(ctx, draft{name: clusterv1.SecretHubKubeconfig, seen: s.Kept.Secret, hub: hub, data: map[string][]byte{
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
	return c.writeSecret(ctx, draft{name: clusterv1.SecretHubKubeconfig, seen: s.Kept.Secret, hub: s.Kept.HubID(),
		data: map[string][]byte{clusterv1.SecretKeyKubeconfig: text}})
}

// postpone records the denial.
func (c *Controller) postpone(ctx context.Context, s State, p Plan) error {
	next := s.Pending
	next.Pending = request.Postponed(s.Now, p.Attempt, p.Reason)
	return c.writePending(ctx, s, next)
}

func (c *Controller) secrets() dynamic.ResourceInterface {
	return c.config.Spoke.Resource(request.Secrets).Namespace(c.config.Namespace)
}

// draft is the intended state of a secret: data is all its content, or some of its keys. hub
// is the hub recorded in it; empty leaves the record unchanged.
type draft struct {
	name string
	seen *Secret
	data map[string][]byte
	all  bool
	hub  string
}

// writeSecret creates the secret, or replaces the one that was seen: its labels and everything else
// users set are preserved. A write in between is a conflict.
func (c *Controller) writeSecret(ctx context.Context, d draft) error {
	data := map[string][]byte{}
	if d.seen != nil && !d.all {
		maps.Copy(data, d.seen.Data)
	}
	maps.Copy(data, d.data)
	u := request.NewSecret(data)
	if d.hub != "" {
		u.SetAnnotations(map[string]string{clusterv1.AnnotationHubID: d.hub})
	}
	if d.seen != nil {
		return d.seen.seen().Replace(ctx, c.secrets(), u)
	}
	u.SetName(d.name)
	u.SetNamespace(c.config.Namespace)
	u.SetLabels(c.config.Labels)
	if _, err := c.secrets().Create(ctx, u, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating secret %s: %w", d.name, err)
	}
	return nil
}

// seen identifies the secret.
func (s *Secret) seen() request.Seen {
	return request.Seen{Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion, Called: s.Name}
}

// isStaleCache reports whether a write to a secret failed because the cache was behind.
func isStaleCache(step request.Step, err error) bool {
	if step == stepJoin || step == request.StepAsk || step == stepTry {
		return false
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}
