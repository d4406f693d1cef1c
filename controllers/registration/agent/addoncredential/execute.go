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
	// throttleDelay is how soon the number of requests is looked at again.
	throttleDelay = time.Minute
	// callTimeout bounds what one step asks of a cluster.
	callTimeout = 15 * time.Second
)

var accountsResource = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}

// errThrottled is in the words that agents of every version use.
var errThrottled = errors.New("Stop creating csr since there are too many csr created already on hub") //nolint:staticcheck // the contract's text

// carryOut does the step of a plan. The caches show the result sooner or later
// and bring the next pass.
func (c *Controller) carryOut(ctx context.Context, s State, p Plan) error {
	if p.Step == request.StepNone {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch p.Step {
	case stepDrop:
		return c.remove(ctx, c.place(s.Want.Hosted), *s.Held)
	case request.StepBegin:
		return c.begin(ctx, s, p)
	case request.StepAsk:
		if err := c.ask(ctx, s, p); err != nil {
			return err
		}
		c.entry(c.slotOf(s.Want.Target)).asked = request.Asked{Name: s.Pending.Pending.Request, At: c.config.Clock.Now()}
	case stepHold:
		next := *s.Pending.Pending
		next.Certificate = s.Answer.Certificate
		return c.note(ctx, s, next)
	case request.StepKeep:
		return c.keep(ctx, s)
	case stepToken:
		return c.token(ctx, s)
	case request.StepRewrite:
		return c.rewrite(ctx, s)
	case request.StepPostpone:
		return c.postpone(ctx, s, p.Attempt, p.Reason)
	case request.StepForget:
		return c.remove(ctx, c.config.Management, *s.Pending)
	case request.StepNone:
	}
	return nil
}

// begin keeps key and name of a request that does not exist yet.
func (c *Controller) begin(ctx context.Context, s State, p Plan) error {
	if err := c.vacant(ctx, s); err != nil {
		return err
	}
	begun, err := request.Begin("addon-"+s.Want.Cluster+"-"+s.Want.AddOn+"-", p.Attempt, p.Reason)
	if err != nil {
		return err
	}
	return c.note(ctx, s, Pending{Pending: begun})
}

// postpone notes that so many requests in a row came to nothing, and why the last
// did.
func (c *Controller) postpone(ctx context.Context, s State, attempt int, reason string) error {
	return c.note(ctx, s, Pending{Pending: request.Postponed(s.Now, attempt, reason)})
}

// vacant makes sure that nobody else has a secret where the credential goes,
// before the hub is asked for anything.
func (c *Controller) vacant(ctx context.Context, s State) error {
	if s.Held != nil {
		return nil
	}
	at := c.slotOf(s.Want.Target)
	if seen, ok := at.place.Secrets.Get(at.key); ok && seen.AddOn != s.Want.AddOn {
		return fmt.Errorf("secret %s is still that of add-on %s", at.key, seen.AddOn)
	}
	return c.unseen(ctx, at)
}

// unseen tells why a secret that the cache does not show cannot be created: it
// is somebody else's, or ours and the cache is behind; nil when there is none.
func (c *Controller) unseen(ctx context.Context, at slot) error {
	live, err := at.place.Client.Resource(request.Secrets).Namespace(at.key.Namespace).Get(ctx, at.key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for secret %s: %w", at.key, err)
	case live.GetLabels()[addonv1alpha1.LabelCredentialAgent] != c.config.Namespace:
		return fmt.Errorf("secret %s is not this agent's, which will not replace it: remove it or rename the add-on", at.key)
	}
	return apierrors.NewAlreadyExists(request.Secrets.GroupResource(), at.key.Name)
}

// ask creates the request whose name and key are kept already.
func (c *Controller) ask(ctx context.Context, s State, p Plan) error {
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

// keep writes the issued certificate with all that belongs to it, at once.
func (c *Controller) keep(ctx context.Context, s State) error {
	certificate := s.Pending.Pending.Certificate
	if len(certificate) == 0 {
		certificate = s.Answer.Certificate
	}
	return c.store(ctx, s, map[string][]byte{clusterv1.SecretKeyTLSCert: certificate, clusterv1.SecretKeyTLSKey: s.Pending.Pending.Key})
}

// token asks the hub for a token and writes it with all that belongs to it.
func (c *Controller) token(ctx context.Context, s State) error {
	if err := c.vacant(ctx, s); err != nil {
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
	return c.store(ctx, s, map[string][]byte{addonv1alpha1.SecretKeyToken: []byte(text)})
}

// store writes the secret of the add-on, whole.
func (c *Controller) store(ctx context.Context, s State, data map[string][]byte) error {
	data[clusterv1.SecretKeyClusterName] = []byte(s.Want.Cluster)
	if s.Want.KubeClient() {
		data[clusterv1.SecretKeyKubeconfig] = c.kubeconfigs[s.Want.Driver]
	}
	at := c.slotOf(s.Want.Target)
	if err := c.write(ctx, at, s.Held, c.secret(s, addonv1alpha1.CredentialIssued, data)); err != nil {
		return err
	}
	c.entry(at).keptAt = s.Now
	return nil
}

// note writes the pending secret, whole.
func (c *Controller) note(ctx context.Context, s State, p Pending) error {
	at := slot{c.config.Management, reconcile.Key{Namespace: c.config.Namespace, Name: s.Want.pendingName()}}
	if seen, ok := at.place.Secrets.Get(at.key); ok && s.Pending == nil {
		// Ours, and somebody changed its labels.
		return c.write(ctx, at, &seen, c.secret(s, addonv1alpha1.CredentialPending, p.data()))
	}
	return c.write(ctx, at, s.Pending, c.secret(s, addonv1alpha1.CredentialPending, p.data()))
}

// secret is a secret of this agent, without name.
func (c *Controller) secret(s State, role string, data map[string][]byte) *unstructured.Unstructured {
	u := request.NewSecret(data)
	u.SetLabels(labels(c.config.Namespace, role, s.Want))
	u.SetAnnotations(map[string]string{addonv1alpha1.AnnotationCredentialDigest: s.Digest})
	return u
}

// write creates the secret, or replaces what was seen of it; what people set
// beside it stays. Another writer in between is a conflict.
func (c *Controller) write(ctx context.Context, at slot, seen *Secret, u *unstructured.Unstructured) error {
	secrets := at.place.Client.Resource(request.Secrets).Namespace(at.key.Namespace)
	if seen == nil {
		u.SetNamespace(at.key.Namespace)
		u.SetName(at.key.Name)
		_, err := secrets.Create(ctx, u, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			if why := c.unseen(ctx, at); why != nil {
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

// rewrite brings kubeconfig and cluster name in line with what they should be.
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

// remove deletes the secret that was seen, and no other.
func (c *Controller) remove(ctx context.Context, p *Place, seen Secret) error {
	return seen.seen().Remove(ctx, p.Client.Resource(request.Secrets).Namespace(seen.Namespace))
}

// seen identifies the secret.
func (s Secret) seen() request.Seen {
	return request.Seen{Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion, Called: s.Namespace + "/" + s.Name}
}

// drop removes every secret of an add-on that none of its registrations wants,
// wherever it is and whenever it was made. Where one of them is refused, what
// the add-on has is left to it, and only requests are removed.
func (c *Controller) drop(ctx context.Context, addOn string, wants []Want) error {
	keep := refused(wants)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	wanted := map[slot]bool{}
	for _, w := range wants {
		wanted[c.slotOf(w.Target)] = true
		wanted[slot{c.config.Management, reconcile.Key{Namespace: c.config.Namespace, Name: w.pendingName()}}] = true
	}
	for s, e := range c.entries {
		if e.addOn == addOn && !wanted[s] {
			c.leave(s)
		}
	}
	var errs []error
	for _, p := range c.places() {
		for _, seen := range p.Secrets.List() {
			if seen.AddOn == addOn && !(keep && seen.Pending == nil) && !wanted[slot{p, reconcile.Key{Namespace: seen.Namespace, Name: seen.Name}}] {
				errs = append(errs, c.remove(ctx, p, seen))
			}
		}
	}
	return errors.Join(errs...)
}
