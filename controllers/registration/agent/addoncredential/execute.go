// SPDX-License-Identifier: Apache-2.0

package addoncredential

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

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	// throttleDelay is how soon the number of requests is checked again.
	throttleDelay = time.Minute
	// callTimeout bounds the requests of one step to a cluster.
	callTimeout = 15 * time.Second
)

var accountsResource = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

// errThrottled has the text that agents of every version use.
var errThrottled = errors.New("Stop creating csr since there are too many csr created already on hub") //nolint:staticcheck // the contract's text

// carryOut performs the step of a plan. The caches eventually show the result, which triggers
// the next pass.
func (c *Controller) carryOut(ctx context.Context, s State, p Plan) error {
	if p.Step == request.StepNone {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch p.Step {
	case stepDrop:
		return c.removeSecret(ctx, c.place(s.Want.Hosted), *s.Held)
	case request.StepBegin:
		return c.beginRequest(ctx, s, p)
	case request.StepRestart:
		if err := request.ConfirmGone(ctx, c.config.Hub, s.Pending.Pending.Request); err != nil {
			return err
		}
		return c.beginRequest(ctx, s, p)
	case request.StepAsk:
		if err := c.createRequest(ctx, s, p); err != nil {
			return err
		}
		c.entry(c.slotOf(s.Want.Target)).asked = request.Asked{Name: s.Pending.Pending.Request, At: c.config.Clock.Now()}
	case stepHold:
		next := *s.Pending.Pending
		next.Certificate = s.Answer.Certificate
		return c.writePending(ctx, s, next)
	case request.StepKeep:
		return c.keepCertificate(ctx, s)
	case stepToken:
		return c.refreshToken(ctx, s)
	case request.StepRewrite:
		return c.rewrite(ctx, s)
	case request.StepPostpone:
		return c.postpone(ctx, s, p.Attempt, p.Reason)
	case request.StepForget:
		return c.removeSecret(ctx, c.config.Management, *s.Pending)
	case request.StepNone:
	}
	return nil
}

// beginRequest stores the key and name of a request that does not exist yet.
func (c *Controller) beginRequest(ctx context.Context, s State, p Plan) error {
	if err := c.checkVacant(ctx, s); err != nil {
		return err
	}
	begun, err := request.Begin("addon-"+s.Want.Cluster+"-"+s.Want.AddOn+"-", p.Attempt, p.Reason)
	if err != nil {
		return err
	}
	return c.writePending(ctx, s, Pending{Pending: begun})
}

// postpone records the number of consecutive failed requests, and why the last one failed.
func (c *Controller) postpone(ctx context.Context, s State, attempt int, reason string) error {
	return c.writePending(ctx, s, Pending{Pending: request.Postponed(s.Now, attempt, reason)})
}

// checkVacant makes sure that no other secret has the credential's name, before anything is
// requested from the hub.
func (c *Controller) checkVacant(ctx context.Context, s State) error {
	if s.Held != nil {
		return nil
	}
	at := c.slotOf(s.Want.Target)
	if seen, ok := at.place.Secrets.Get(at.key); ok && seen.AddOn != s.Want.AddOn {
		return fmt.Errorf("secret %s still belongs to add-on %s", at.key, seen.AddOn)
	}
	return c.checkUnseen(ctx, at)
}

// checkUnseen returns why a secret that the cache does not show cannot be created: it belongs to
// another owner, or to this agent and the cache is behind; nil when there is none.
func (c *Controller) checkUnseen(ctx context.Context, at slot) error {
	live, err := at.place.Client.Resource(request.Secrets).Namespace(at.key.Namespace).Get(ctx, at.key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for secret %s: %w", at.key, err)
	case live.GetLabels()[addonv1alpha1.LabelCredentialAgent] != c.config.Namespace:
		return fmt.Errorf("secret %s is not this agent's and will not be replaced: remove it or rename the add-on", at.key)
	}
	return apierrors.NewAlreadyExists(request.Secrets.GroupResource(), at.key.Name)
}

// createRequest creates the request whose name and key are already stored.
func (c *Controller) createRequest(ctx context.Context, s State, p Plan) error {
	w, pending := s.Want, s.Pending.Pending
	marks := map[string]string{clusterv1.LabelClusterName: w.Cluster, clusterv1.LabelAddOnName: w.AddOn}
	err := request.Want{
		Name: pending.Request, Labels: marks, Signer: w.Signer, Subject: w.Subject,
		DNSNames: []string{w.AddOn + addonv1alpha1.DNSNameSuffix}, Key: pending.Key, Seconds: c.config.CertificateSeconds,
	}.Create(ctx, c.config.Hub, metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: marks}))
	switch {
	case errors.Is(err, request.ErrThrottled):
		return errThrottled
	case errors.Is(err, request.ErrTaken):
		return c.postpone(ctx, s, p.Attempt+1, err.Error())
	}
	return err
}

// keepCertificate stores the issued certificate and everything that belongs to it in one write.
func (c *Controller) keepCertificate(ctx context.Context, s State) error {
	certificate := s.Pending.Pending.Certificate
	if len(certificate) == 0 {
		certificate = s.Answer.Certificate
	}
	return c.storeCredential(ctx, s, map[string][]byte{clusterv1.SecretKeyTLSCert: certificate, clusterv1.SecretKeyTLSKey: s.Pending.Pending.Key})
}

// refreshToken requests a token from the hub and stores it with everything that belongs to it.
func (c *Controller) refreshToken(ctx context.Context, s State) error {
	if err := c.checkVacant(ctx, s); err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"metadata": map[string]any{"namespace": s.Want.Cluster, "name": s.Want.account()},
		"spec":     map[string]any{"expirationSeconds": c.config.TokenSeconds},
	}}
	answer, err := c.config.Hub.Resource(accountsResource).Namespace(s.Want.Cluster).Create(ctx, u, metav1.CreateOptions{}, "token")
	if err != nil {
		return fmt.Errorf("asking for a token of ServiceAccount %s: %w", s.serviceAccount(), err)
	}
	text, _, _ := unstructured.NestedString(answer.Object, "status", "token")
	life, err := readToken([]byte(text))
	switch {
	case err != nil:
		return fmt.Errorf("asking for a token of ServiceAccount %s: %w", s.serviceAccount(), err)
	case life.UID != s.Infrastructure || life.Owner != s.serviceAccount():
		return fmt.Errorf("the token of ServiceAccount %s is not of the one with UID %s that the hub names", s.serviceAccount(), s.Infrastructure)
	}
	return c.storeCredential(ctx, s, map[string][]byte{addonv1alpha1.SecretKeyToken: []byte(text)})
}

// storeCredential writes the whole secret of the add-on.
func (c *Controller) storeCredential(ctx context.Context, s State, data map[string][]byte) error {
	data[clusterv1.SecretKeyClusterName] = []byte(s.Want.Cluster)
	if s.Want.KubeClient() {
		data[clusterv1.SecretKeyKubeconfig] = c.kubeconfigs[s.Want.Driver]
	}
	at := c.slotOf(s.Want.Target)
	if err := c.writeSecret(ctx, at, s.Held, c.newSecret(s, addonv1alpha1.CredentialIssued, data)); err != nil {
		return err
	}
	c.entry(at).keptAt = s.Now
	return nil
}

// writePending writes the whole pending secret.
func (c *Controller) writePending(ctx context.Context, s State, p Pending) error {
	at := slot{c.config.Management, reconcile.Key{Namespace: c.config.Namespace, Name: s.Want.pendingName()}}
	if seen, ok := at.place.Secrets.Get(at.key); ok && s.Pending == nil {
		// It is this agent's, but its labels were changed.
		return c.writeSecret(ctx, at, &seen, c.newSecret(s, addonv1alpha1.CredentialPending, p.data()))
	}
	return c.writeSecret(ctx, at, s.Pending, c.newSecret(s, addonv1alpha1.CredentialPending, p.data()))
}

// newSecret returns a secret of this agent, without a name.
func (c *Controller) newSecret(s State, role string, data map[string][]byte) *unstructured.Unstructured {
	u := request.NewSecret(data)
	u.SetLabels(secretLabels(c.config.Namespace, role, s.Want))
	u.SetAnnotations(map[string]string{addonv1alpha1.AnnotationCredentialDigest: s.Digest})
	return u
}

// writeSecret creates the secret, or replaces the one that was seen, preserving what users added to
// it. A write in between is a conflict.
func (c *Controller) writeSecret(ctx context.Context, at slot, seen *Secret, u *unstructured.Unstructured) error {
	secrets := at.place.Client.Resource(request.Secrets).Namespace(at.key.Namespace)
	if seen == nil {
		u.SetNamespace(at.key.Namespace)
		u.SetName(at.key.Name)
		_, err := secrets.Create(ctx, u, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			if why := c.checkUnseen(ctx, at); why != nil {
				err = why
			}
		}
		if err != nil {
			return fmt.Errorf("creating secret %s: %w", at.key, err)
		}
		return nil
	}
	return seen.seen().Replace(ctx, secrets, u)
}

// rewrite updates the kubeconfig and the cluster name in the secret.
func (c *Controller) rewrite(ctx context.Context, s State) error {
	secrets := c.place(s.Want.Hosted).Client.Resource(request.Secrets).Namespace(s.Held.Namespace)
	return s.Held.seen().Update(ctx, secrets, func(live *unstructured.Unstructured) {
		data, _, _ := unstructured.NestedMap(live.Object, "data")
		data[clusterv1.SecretKeyClusterName] = base64.StdEncoding.EncodeToString([]byte(s.Want.Cluster))
		delete(data, clusterv1.SecretKeyKubeconfig)
		if s.Want.KubeClient() {
			data[clusterv1.SecretKeyKubeconfig] = base64.StdEncoding.EncodeToString(c.kubeconfigs[s.Want.Driver])
		}
		live.Object["data"] = data
	})
}

// removeSecret deletes the secret that was seen, and no other.
func (c *Controller) removeSecret(ctx context.Context, p *Place, seen Secret) error {
	return seen.seen().Remove(ctx, p.Client.Resource(request.Secrets).Namespace(seen.Namespace))
}

// seen identifies the secret.
func (s Secret) seen() request.Seen {
	return request.Seen{Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion, Called: s.Namespace + "/" + s.Name}
}

// dropUnwanted removes every secret of an add-on that none of its registrations wants, wherever and
// whenever it was made. If a registration is refused, the add-on keeps its credentials, and
// only requests are removed.
func (c *Controller) dropUnwanted(ctx context.Context, addOn string, wants []Want) error {
	keep := anyRefused(wants)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	wanted := map[slot]bool{}
	for _, w := range wants {
		wanted[c.slotOf(w.Target)] = true
		wanted[slot{c.config.Management, reconcile.Key{Namespace: c.config.Namespace, Name: w.pendingName()}}] = true
	}
	for s, e := range c.entries {
		if e.addOn == addOn && !wanted[s] {
			c.dropEntry(s)
		}
	}
	var errs []error
	for _, p := range c.places() {
		for _, seen := range p.Secrets.List() {
			if seen.AddOn == addOn && !(keep && seen.Pending == nil) && !wanted[slot{p, reconcile.Key{Namespace: seen.Namespace, Name: seen.Name}}] {
				errs = append(errs, c.removeSecret(ctx, p, seen))
			}
		}
	}
	return errors.Join(errs...)
}
