// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var accountsResource = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

// throttled is the text that agents of every version use.
const throttled = "Stop creating csr since there are too many csr created already on hub"

// carryOut performs the step of a plan. The caches eventually show the result, which triggers
// the next pass.
func (c *Controller) carryOut(ctx context.Context, s State, p Plan) error {
	ctx, cancel := context.WithTimeout(ctx, request.CallTimeout)
	defer cancel()
	switch p.Step {
	case request.StepNone:
		return nil
	case stepDrop:
		return s.Held.Remove(ctx, c.slotOf(s.Want.Target).secrets())
	case stepHold:
		next := *s.Pending.Pending
		next.Certificate = p.Certificate
		return c.writePending(ctx, s, next)
	case request.StepKeep:
		return c.storeCredential(ctx, s, map[string][]byte{clusterv1.SecretKeyTLSCert: p.Certificate, clusterv1.SecretKeyTLSKey: s.Pending.Pending.Key})
	case stepToken:
		return c.refreshToken(ctx, s)
	case request.StepRewrite:
		return c.rewrite(ctx, s)
	case request.StepForget:
		return s.Pending.Remove(ctx, c.pendingSlot(s.Want).secrets())
	default:
	}
	w := s.Want
	marks := map[string]string{clusterv1.LabelClusterName: w.Cluster, clusterv1.LabelAddOnName: w.AddOn}
	e := request.Errand{
		Hub: c.config.Hub, Prefix: "addon-" + w.Cluster + "-" + w.AddOn + "-",
		Want: request.Want{
			Labels: marks, Signer: w.Signer, Subject: w.Subject,
			DNSNames: []string{w.AddOn + addonv1alpha1.DNSNameSuffix}, Seconds: c.config.CertificateSeconds,
		},
		Selector: metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: marks}),
		Write: func(ctx context.Context, next request.Pending) error {
			if p.Begins() {
				if err := c.checkVacant(ctx, s); err != nil {
					return err
				}
				logr.FromContextOrDiscard(ctx).Info("Certificate request begins", "addon", w.AddOn, "secret", w.Name, "request", next.Request,
					"reason", p.Message, "registration", s.Digest, "pending", s.Pending.digest())
			}
			return c.writePending(ctx, s, next)
		},
	}
	if s.Pending != nil {
		e.Pending = *s.Pending.Pending
	}
	err := e.Do(ctx, p.Plan, s.Now)
	if p.Step == request.StepAsk && err == nil {
		c.entries[c.slotOf(w.Target)].asked = request.Asked{Name: e.Pending.Request, At: c.config.Clock.Now()}
	}
	return err
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
	live, err := at.secrets().Get(ctx, at.key.Name, metav1.GetOptions{})
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
	life := readToken([]byte(text))
	switch {
	case life.Problem != "":
		return fmt.Errorf("asking for a token of ServiceAccount %s: %s", s.serviceAccount(), life.Problem)
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
	c.entries[at].keptAt = s.Now
	return nil
}

// writePending writes the whole pending secret, over nothing but what the decision was made from: a
// secret that the cache shows only since then may hold a request that is already on its way.
func (c *Controller) writePending(ctx context.Context, s State, p request.Pending) error {
	return c.writeSecret(ctx, c.pendingSlot(s.Want), s.Stored, c.newSecret(s, addonv1alpha1.CredentialPending, p.Data()))
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
	if seen != nil {
		return seen.Replace(ctx, at.secrets(), u)
	}
	u.SetNamespace(at.key.Namespace)
	u.SetName(at.key.Name)
	_, err := at.secrets().Create(ctx, u, metav1.CreateOptions{})
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

// rewrite updates the kubeconfig and the cluster name in the secret.
func (c *Controller) rewrite(ctx context.Context, s State) error {
	return s.Held.Update(ctx, c.slotOf(s.Want.Target).secrets(), func(live *unstructured.Unstructured) {
		data, _, _ := unstructured.NestedMap(live.Object, "data")
		data[clusterv1.SecretKeyClusterName] = base64.StdEncoding.EncodeToString([]byte(s.Want.Cluster))
		delete(data, clusterv1.SecretKeyKubeconfig)
		if s.Want.KubeClient() {
			data[clusterv1.SecretKeyKubeconfig] = base64.StdEncoding.EncodeToString(c.kubeconfigs[s.Want.Driver])
		}
		live.Object["data"] = data
	})
}

// dropUnwanted removes every secret of an add-on that none of its registrations wants, wherever and
// whenever it was made. If a registration is refused, the add-on keeps its credentials, and
// only requests are removed.
func (c *Controller) dropUnwanted(ctx context.Context, addOn string, wants []Want) error {
	keep := slices.ContainsFunc(wants, func(w Want) bool { return w.Problem != "" })
	ctx, cancel := context.WithTimeout(ctx, request.CallTimeout)
	defer cancel()
	wanted := map[slot]bool{}
	for _, w := range wants {
		wanted[c.slotOf(w.Target)], wanted[c.pendingSlot(w)] = true, true
	}
	for s, e := range c.entries {
		if e.addOn == addOn && !wanted[s] {
			c.dropEntry(s)
		}
	}
	var errs []error
	for _, p := range c.places() {
		for _, seen := range p.Secrets.List() {
			at := slot{p, reconcile.Key{Namespace: seen.Namespace, Name: seen.Name}}
			if seen.AddOn == addOn && !(keep && seen.Pending == nil) && !wanted[at] {
				logr.FromContextOrDiscard(ctx).Info("Secret that no registration wants is removed", "addon", addOn, "secret", at.key.String(), "registrations", len(wants))
				errs = append(errs, seen.Remove(ctx, at.secrets()))
			}
		}
	}
	return errors.Join(errs...)
}
