// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/origin"
	"github.com/kubectl-ocm/kubectl-ocm/internal/review"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// take takes the step of a plan, and changes the state to what is known afterwards.
func (c *Controller) take(ctx context.Context, s *State, p Plan) error {
	switch p.Step {
	case Remove:
		return c.remove(ctx, s)
	case Create:
		return c.create(ctx, s)
	case Review:
		return c.review(ctx, s)
	case Read:
		return c.read(ctx, s)
	case Request:
		return c.request(ctx, s, p.Why)
	case Repair:
		return c.write(ctx, s, s.Secret.Text)
	case Done:
	}
	return nil
}

// remove deletes the account; its tokens end with it.
func (c *Controller) remove(ctx context.Context, s *State) error {
	err := reconcile.Delete(ctx, c.config.Managed, reconcile.Target{Resource: accounts, Namespace: s.Namespace, Name: s.Name, UID: s.Account.UID})
	if err == nil {
		logr.FromContextOrDiscard(ctx).Info("Removed ServiceAccount", "serviceaccount", s.Name)
	}
	return err
}

// create creates the account.
func (c *Controller) create(ctx context.Context, s *State) error {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount"}}
	u.SetNamespace(s.Namespace)
	u.SetName(s.Name)
	labels, annotations := origin.Marks(s.Hub)
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	live, err := c.config.Managed.Resource(accounts).Namespace(s.Namespace).Create(ctx, u, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating ServiceAccount %s/%s: %w", s.Namespace, s.Name, err)
	}
	s.Account = accountOf(live)
	logr.FromContextOrDiscard(ctx).Info("Created ServiceAccount", "serviceaccount", s.Name)
	return nil
}

// review asks the cluster whether it accepts the token in the Secret.
func (c *Controller) review(ctx context.Context, s *State) error {
	user, ok, err := review.Bearer(ctx, c.config.Managed, s.Secret.Text)
	if err != nil {
		return err
	}
	say := Refused
	if ok && user.Username == s.Secret.Token.Subject {
		say = Accepted
	}
	c.learn(s.Name, s.Secret.Text, say)
	c.complete(s)
	return nil
}

// request requests a token and writes it to the Secret.
func (c *Controller) request(ctx context.Context, s *State, why string) error {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"metadata": map[string]any{"namespace": s.Namespace, "name": s.Name},
		"spec":     map[string]any{"expirationSeconds": int64(s.Asked.Spec.Rotation.Validity.Duration / time.Second)},
	}}
	answer, err := c.config.Managed.Resource(accounts).Namespace(s.Namespace).Create(ctx, u, metav1.CreateOptions{}, "token")
	if err != nil {
		return fmt.Errorf("requesting a token of ServiceAccount %s/%s: %w", s.Namespace, s.Name, err)
	}
	text, _, _ := unstructured.NestedString(answer.Object, "status", "token")
	token, ok := parse(text)
	switch {
	case !ok:
		return errors.New("the cluster grants tokens that are no JSON Web Tokens with a life")
	case token.Subject != s.subject():
		return fmt.Errorf("the cluster granted a token of %s instead of %s", token.Subject, s.subject())
	}
	c.learn(s.Name, text, Accepted)
	c.mu.Lock()
	c.ahead = token.Issued.Sub(c.config.Clock.Now()).Truncate(time.Second)
	c.mu.Unlock()
	if err := c.write(ctx, s, text); err != nil {
		return err
	}
	logr.FromContextOrDiscard(ctx).Info("Wrote a new token", "serviceaccount", s.Name, "because", why, "expires", token.Expires)
	return nil
}

// write creates the Secret, or changes it so that it holds exactly a token and the authority.
// Labels and annotations of others stay.
func (c *Controller) write(ctx context.Context, s *State, text string) error {
	api := c.config.Hub.Resource(secrets).Namespace(c.config.Cluster)
	content := s.content(text)
	var live *unstructured.Unstructured
	var err error
	if s.Secret == nil {
		u := &unstructured.Unstructured{Object: content}
		u.SetName(s.Name)
		live, err = api.Create(ctx, u, metav1.CreateOptions{FieldManager: c.exec.Manager()})
	} else {
		var body []byte
		if body, err = json.Marshal(content); err == nil {
			live, err = api.Patch(ctx, s.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: c.exec.Manager()})
		}
	}
	if err != nil {
		return fmt.Errorf("writing the Secret on the hub: %w", err)
	}
	s.Secret, _ = decode(live)
	c.complete(s)
	return nil
}

// content returns what to create the Secret with, or what to merge into it.
func (s State) content(text string) map[string]any {
	by := owner(s.Asked)
	data := map[string]any{
		authenticationv1beta1.SecretKeyToken: base64.StdEncoding.EncodeToString([]byte(text)),
		authenticationv1beta1.SecretKeyCA:    base64.StdEncoding.EncodeToString(s.CA),
	}
	meta := map[string]any{
		"labels":          map[string]any{authenticationv1beta1.LabelManaged: labelled},
		"ownerReferences": []any{map[string]any{"apiVersion": by.APIVersion, "kind": by.Kind, "name": by.Name, "uid": string(by.UID)}},
	}
	if s.Secret != nil {
		meta["uid"], meta["resourceVersion"] = string(s.Secret.UID), s.Secret.Version
		for _, key := range s.Secret.More {
			data[key] = nil
		}
	}
	return map[string]any{"apiVersion": "v1", "kind": "Secret", "type": string(corev1.SecretTypeOpaque), "metadata": meta, "data": data}
}
