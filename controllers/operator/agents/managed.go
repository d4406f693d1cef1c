// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent/manifests"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/remotetoken"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Managed is the managed cluster of a hosted agent, as far as it is known.
type Managed struct {
	// Problem is why it cannot be changed; empty when it can. Absent is true when that is the
	// Secret, and not the cluster.
	Problem string
	Absent  bool
	// Namespaces are those of agents, by name.
	Namespaces map[string]Labelled
	// Rights are the applies of the agent's ServiceAccounts and rights there.
	Rights []reconcile.Write
	// Accounts are the UIDs of the agent's ServiceAccounts, by name.
	Accounts map[string]types.UID
	// Kubeconfig is that of the agent, which names a token beside it.
	Kubeconfig []byte
	// PullCopy is the image pull secret in the namespace of add-ons; nil without one.
	PullCopy *Secret
}

// remote is the connection to the managed cluster of one hosted agent.
type remote struct {
	// about identifies the kubeconfig.
	about   string
	config  *kubeconfig.Config
	link    *agent.Link
	execute *reconcile.Executor
	site    *site
	// apart is true once it is known that the cluster is another one, without a Klusterlet of
	// the same name.
	apart bool
	end   func()
}

// managedPatience is how long writes to a managed cluster may take in one pass.
const managedPatience = 30 * time.Second

// connectManaged follows the managed cluster of a kubeconfig, until its end is called.
func (c *Controller) connectManaged(ctx context.Context, klusterlet, about string, data map[string][]byte) (*remote, error) {
	config, err := kubeconfig.ParseSecret(data)
	if err != nil {
		return nil, err
	}
	link, err := agent.NewLink(config, c.config.UserAgent)
	if err != nil {
		return nil, err
	}
	wake := func() { c.wake(klusterlet) }
	r := &remote{about: about, config: config, link: link, execute: reconcile.NewExecutor(link.Client, Name, c.config.Clock)}
	r.site = newSite(siteOptions{
		client: link.Client, klusterlet: klusterlet, secrets: []string{operatorv1.SecretImagePull}, definitions: c.config.Definitions,
		version: c.config.Version, wakeAll: wake, wake: func(string) { wake() }, log: c.config.Log.WithValues("klusterlet", klusterlet),
	})
	r.site.namespaces.OnOutcome(func(error) { wake() })
	r.end = shared.Follow(ctx, r.site.collections())
	return r, nil
}

// End ends the watches and the connection.
func (r *remote) End() {
	r.end()
	r.link.Close()
}

// reach returns the connection that Secret external-managed-kubeconfig gives. known is false while
// the cluster has not answered yet; otherwise the error says why it cannot be changed.
func (c *Controller) reach(ctx context.Context, k *operatorv1.Klusterlet, secret *Secret) (r *remote, known bool, err error) {
	at := "Secret " + k.Name + "/" + operatorv1.SecretExternalManagedKubeconfig
	if secret == nil {
		c.remotes.Set(k.Name, nil)
		return nil, true, absentError(at + " is missing: create it with a kubeconfig of the managed cluster")
	}
	r = c.remotes.Get(k.Name)
	if about := string(secret.UID) + "/" + secret.Version; r == nil || r.about != about {
		next, err := c.connectManaged(ctx, k.Name, about, secret.Data)
		c.remotes.Set(k.Name, next)
		if err != nil {
			return nil, true, absentError(at + ": " + err.Error())
		}
		r = next
	}
	text, known := shared.Problem(r.site.collections())
	if known {
		text = r.trouble()
	}
	if text != "" {
		return nil, true, errors.New(away + text)
	}
	if !known || r.apart {
		return r, known, nil
	}
	return r, true, r.checkApart(ctx, k, at)
}

// away begins what is said of a managed cluster that does not answer.
const away = "The managed cluster cannot be reached: "

// absentError says that there is no usable kubeconfig.
type absentError string

func (e absentError) Error() string { return string(e) }

// trouble returns why the cluster did not answer lately; empty when it did.
func (r *remote) trouble() (text string) {
	for _, one := range r.site.collections() {
		text = cmp.Or(text, watch.Reason(one.Err()))
	}
	return text
}

// checkApart makes sure that the agent does not meet another one of the same name, which would
// have the same objects.
func (r *remote) checkApart(ctx context.Context, k *operatorv1.Klusterlet, at string) error {
	ctx, cancel := context.WithTimeout(ctx, managedPatience)
	defer cancel()
	other, err := r.link.Client.Resource(klusterletsResource).Get(ctx, k.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		r.apart = true
		return nil
	case err != nil:
		return errors.New(away + watch.Reason(err))
	case other.GetUID() == k.UID:
		return absentError(at + " leads to this very cluster: use the mode Default or Singleton")
	}
	return absentError("The managed cluster has a Klusterlet " + k.Name + " of its own: choose another name for this one")
}

// gatherManaged reads what is known of the managed cluster; false while it has not answered yet.
func (c *Controller) gatherManaged(ctx context.Context, s *State) (bool, error) {
	k := s.Klusterlet
	if len(s.Deployments) == 0 {
		var err error
		if s.HubNamespaceOf, err = c.hubNamespaceOf(ctx, k.Name); err != nil {
			return true, err
		}
	}
	s.Managed = Managed{Namespaces: map[string]Labelled{}, Accounts: map[string]types.UID{}}
	r, known, err := c.reach(ctx, k, s.secret(operatorv1.SecretExternalManagedKubeconfig))
	if err != nil {
		_, s.Managed.Absent = errors.AsType[absentError](err)
		s.Managed.Problem = err.Error()
		return true, nil
	}
	if !known {
		return false, nil
	}
	var others []string
	for _, n := range r.site.namespaces.List() {
		s.Managed.Namespaces[n.Name] = n
		if n.Klusterlet != "" && n.Klusterlet != k.Name && !n.Leaving {
			others = append(others, n.Klusterlet)
		}
	}
	s.Parts = r.site.shared.Parts(k.Name, others)
	s.NoAddOns = c.config.NoAddOns
	at := reconcile.Key{Namespace: operatorv1.NamespaceAgentAddOn, Name: operatorv1.SecretImagePull}
	if copied, ok := r.site.secrets[operatorv1.SecretImagePull].Get(at); ok {
		s.Managed.PullCopy = &copied
	}
	objects, err := rights(k, k.ManagedNamespace(), !s.isSingleton())
	if err != nil {
		return true, err
	}
	s.Managed.Rights = r.site.live(s.placeable(ofManaged(objects, true)))
	for _, name := range []string{manifests.RegistrationAccount(k.Name), manifests.WorkAccount(k.Name)} {
		if seen, ok := r.site.restored[accountsResource].Get(reconcile.Key{Namespace: k.ManagedNamespace(), Name: name}); ok {
			s.Managed.Accounts[name] = seen.UID
		}
	}
	s.Managed.Kubeconfig, err = r.config.WithTokenFile()
	return true, err
}

// ofManaged returns the rights of a hosted agent that belong to its managed cluster, or else those
// for its pods. It has a ServiceAccount on each side.
func ofManaged(objects []*unstructured.Unstructured, managed bool) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, u := range objects {
		there := u.GetNamespace() == operatorv1.NamespaceAgentAddOn ||
			strings.HasPrefix(u.GetKind(), "ClusterRole") && u.GetName() != manifests.MetricsBinding(u.GetLabels()[operatorv1.LabelCreatedByKlusterlet])
		if u.GetKind() == "ServiceAccount" || there == managed {
			out = append(out, u)
		}
	}
	return out
}

// token is a token to request for a process of a hosted agent, and the Secret for it.
type token struct {
	secret string
	remotetoken.Token
}

// tokens returns which tokens to request now, and after how long the next one is due.
func (s State) tokens() (due []token, next time.Duration) {
	for _, p := range s.processes() {
		account := p.account(s.Klusterlet.Name)
		uid, ok := s.Managed.Accounts[account]
		if !ok {
			continue // its event comes
		}
		want := token{p.spokeSecret(), remotetoken.Token{
			Namespace: s.Klusterlet.ManagedNamespace(), Account: account, UID: uid, Kubeconfig: s.Managed.Kubeconfig,
		}}
		var held map[string][]byte
		if secret := s.secret(want.secret); secret != nil {
			held = secret.Data
		}
		left := want.Left(held, s.Now)
		if left <= 0 {
			due = append(due, want)
		} else if next == 0 || left < next {
			next = left
		}
	}
	return due, next
}

// issue requests tokens on the managed cluster and keeps them where the agent runs.
func (c *Controller) issue(ctx context.Context, k *operatorv1.Klusterlet, due []token) error {
	ctx, cancel := context.WithTimeout(ctx, managedPatience)
	defer cancel()
	for _, t := range due {
		u, err := t.Request(ctx, c.remotes.Get(k.Name).link.Client, c.config.Clock.Now())
		if err != nil {
			return err
		}
		u.SetNamespace(k.Name)
		u.SetName(t.secret)
		u.SetLabels(map[string]string{operatorv1.LabelCreatedByKlusterlet: k.Name})
		if _, err := c.execute.Execute(ctx, k, reconcile.Plan{Writes: []reconcile.Write{reconcile.Apply{Object: u}}}); err != nil {
			return err
		}
	}
	return nil
}

// onManaged carries out writes on the managed cluster.
func (c *Controller) onManaged(ctx context.Context, k *operatorv1.Klusterlet, writes []reconcile.Write) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, managedPatience)
	defer cancel()
	return c.remotes.Get(k.Name).execute.Execute(ctx, k, reconcile.Plan{Writes: writes})
}

// cleanManaged removes the agent from its managed cluster; what works applied stays.
func (c *Controller) cleanManaged(ctx context.Context, k *operatorv1.Klusterlet) error {
	ctx, cancel := context.WithTimeout(ctx, managedPatience)
	defer cancel()
	return teardown.Operated(ctx, c.remotes.Get(k.Name).link.Client, k, k.ManagedNamespace())
}
