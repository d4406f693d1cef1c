// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// joinEvery is how long the ManagedCluster is assumed to exist while waiting for access; up to
// as much again is added per cluster.
const joinEvery = time.Hour

var (
	errThrottled = errors.New("the hub holds ten certificate requests of this cluster; no more are made until some are gone")
	errLeaving   = errors.New("the hub is still removing a ManagedCluster of that name; a new one is created once that one is gone")
	errNoHub     = errors.New("the server does not serve ManagedClusters: it is not an Open Cluster Management hub")
)

var clustersResource = clusterv1.GroupVersion.WithResource("managedclusters")

// execute performs the step of a plan. The caches eventually show the result, which triggers
// the next pass.
func (c *Controller) execute(ctx context.Context, s State, p Plan) error {
	ctx, cancel := context.WithTimeout(ctx, request.CallTimeout)
	defer cancel()
	switch p.Step {
	case request.StepNone:
		return nil
	case stepJoin:
		return c.joinHub(ctx, s)
	case stepTry:
		return c.tryMoved(ctx, s)
	case stepInquire:
		c.inquire(ctx, s)
		return nil
	case request.StepKeep:
		return c.keepCertificate(ctx, s, p.Certificate)
	case request.StepRewrite:
		return c.writeKept(ctx, s, s.Kept.HubID(), nil)
	case request.StepForget:
		return s.Pending.Secret.Remove(ctx, c.secrets())
	default:
	}
	err := request.Errand{
		Hub: c.link(p.Own).Client, Prefix: s.Identity.Cluster + "-",
		Want: newRequest(s.Pending.Identity, c.Settings().CertificateSeconds), Selector: requestLabels(s.Identity), Pending: s.Pending.Pending,
		Write: func(ctx context.Context, next request.Pending) error { return c.writePending(ctx, s, p, next) },
	}.Do(ctx, p.Plan, s.Now)
	if p.Step == request.StepAsk && err == nil {
		c.asked = request.Asked{Name: s.Pending.Request, At: c.config.Clock.Now()}
	}
	return err
}

// newRequest returns the certificate request of an agent, without name and key.
func newRequest(id agent.Identity, seconds int32) request.Want {
	return request.Want{
		Labels: map[string]string{clusterv1.LabelClusterName: id.Cluster}, Signer: clusterv1.SignerName,
		Subject: pkix.Name{CommonName: id.CommonName(), Organization: id.Organizations()}, Seconds: seconds,
	}
}

// requestLabels selects the requests of a cluster itself, not those of its add-ons.
func requestLabels(id agent.Identity) string {
	return clusterv1.LabelClusterName + "=" + id.Cluster + ",!" + clusterv1.LabelAddOnName
}

// writePending writes the whole pending secret.
func (c *Controller) writePending(ctx context.Context, s State, p Plan, next request.Pending) error {
	pending := s.Pending
	pending.Pending = next
	if p.Begins() {
		pending.Identity, pending.Hub, pending.Bootstrap = s.Identity, s.target().ID(), s.Bootstrap.Digest
		if !p.Own {
			// An agent that lost its access may have lost its ManagedCluster too.
			c.joined = joined{}
		}
	}
	return c.writeSecret(ctx, clusterv1.SecretHubKubeconfigPending, s.Pending.Secret, "", pending.data())
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

// keepCertificate stores the issued certificate and everything that belongs to it in one write.
func (c *Controller) keepCertificate(ctx context.Context, s State, certificate []byte) error {
	hub := s.target().ID()
	if s.unusable() == "" {
		// A renewal: the hub is still the same.
		hub = s.Kept.HubID()
	}
	err := c.writeKept(ctx, s, hub, map[string][]byte{
		clusterv1.SecretKeyTLSCert:     certificate,
		clusterv1.SecretKeyTLSKey:      s.Pending.Key,
		clusterv1.SecretKeyClusterName: []byte(s.Identity.Cluster),
		clusterv1.SecretKeyAgentName:   []byte(s.Identity.Agent),
	})
	if err == nil {
		c.keptAt = s.Now
	}
	return err
}

// writeKept writes the kubeconfig and further keys of the hub secret, and leaves its other
// content as it is.
func (c *Controller) writeKept(ctx context.Context, s State, hub string, data map[string][]byte) error {
	text, err := s.target().Kept()
	if err != nil {
		return err
	}
	all := map[string][]byte{}
	if s.Kept.Secret != nil {
		maps.Copy(all, s.Kept.Secret.Data)
	}
	maps.Copy(all, data)
	all[clusterv1.SecretKeyKubeconfig] = text
	return c.writeSecret(ctx, clusterv1.SecretHubKubeconfig, s.Kept.Secret, hub, all)
}

func (c *Controller) secrets() dynamic.ResourceInterface {
	return c.config.Management.Resource(request.Secrets).Namespace(c.config.Namespace)
}

// writeSecret creates the secret, or replaces the one that was seen: its labels and everything else
// users set are preserved. A write in between is a conflict. hub is the hub recorded in it;
// empty leaves the record unchanged.
func (c *Controller) writeSecret(ctx context.Context, name string, seen *Secret, hub string, data map[string][]byte) error {
	u := request.NewSecret(data)
	if hub != "" {
		u.SetAnnotations(map[string]string{clusterv1.AnnotationHubID: hub})
	}
	if seen != nil {
		return seen.Replace(ctx, c.secrets(), u)
	}
	u.SetName(name)
	u.SetNamespace(c.config.Namespace)
	u.SetLabels(c.config.Labels)
	if _, err := c.secrets().Create(ctx, u, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating secret %s: %w", name, err)
	}
	return nil
}

// isStaleCache reports whether a write to a secret failed because the cache was behind.
func isStaleCache(step request.Step, err error) bool {
	if step == stepJoin || step == request.StepAsk || step == stepTry || step == stepInquire {
		return false
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}
