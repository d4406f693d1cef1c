// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/deploy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/health"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/registration"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// reconcileRegistration gives an instance its credentials and permissions.
func (r *runner) reconcileRegistration(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	s := registration.State{Bindings: r.bindings.list(key), Now: r.Clock.Now()}
	if r.roles != nil {
		s.Roles = r.roles.list(key)
	}
	if r.label != "" {
		s.Labels = map[string]string{r.label: ""}
	}
	i, there := r.instance(key)
	if !there {
		r.asked.forget(key)
		r.unregistered.Note(key, false)
		return r.registering.Execute(ctx, gone(key), registration.Decide(s))
	}
	addOn, ok := r.find(i.AddOn)
	if !ok {
		return reconcile.Result{}, nil
	}
	s.AddOn, s.Cluster, s.Options = i.AddOn, i.Cluster, addOn.Options()
	if a, ok := addOn.(addonkit.Healthy); ok {
		s.HealthCheck = health.ModeOf(a.Health())
	}
	if i.Cluster != nil && i.Cluster.Spec.HubAcceptsClient {
		s.Fault = r.ask(ctx, addOn, i, &s)
		if err := r.readNamed(ctx, &s); err != nil {
			return reconcile.Result{}, err
		}
	}
	result, err := r.registering.Execute(ctx, i.AddOn, registration.Decide(s))
	r.unregistered.Note(key, apierrors.IsForbidden(err) || apierrors.IsNotFound(err))
	return result, err
}

// ask finds out what the add-on needs on the hub, and calls it only if the answer is not
// known. Its type decides whether it is a Registrar.
func (r *runner) ask(ctx context.Context, addOn addonkit.AddOn, i addonkit.Instance, s *registration.State) error {
	key := reconcile.KeyOf(i.AddOn)
	_, registrar := addOn.(addonkit.Registrar)
	from, traced := inputsOf(addOn, i)
	if traced = traced && registrar; traced {
		if have, ok := r.asked.recall(key, from); ok {
			s.Registrar, s.Registrations, s.Namespace, s.Permissions = true, have.Registrations, have.Namespace, have.Permissions
			return nil
		}
	}
	err := guarded(ctx, func() error { return ask(ctx, addOn, i, s) })
	if err == nil && traced {
		r.asked.hold(key, from, &asked{
			Of: metav1.ObjectMeta{UID: i.AddOn.UID}, Registrations: s.Registrations, Namespace: s.Namespace, Permissions: s.Permissions,
		})
	}
	return err
}

// ask calls the add-on.
func ask(ctx context.Context, addOn addonkit.AddOn, i addonkit.Instance, s *registration.State) (err error) {
	if a, ok := addOn.(addonkit.Registrar); ok {
		s.Registrar = true
		if s.Registrations, err = a.Registrations(ctx, i); err != nil {
			return fmt.Errorf("registrations: %w", err)
		}
	}
	if a, ok := addOn.(addonkit.Placed); ok {
		if s.Namespace, err = a.InstallNamespace(ctx, i); err != nil {
			return fmt.Errorf("install namespace: %w", err)
		}
	}
	if a, ok := addOn.(addonkit.Permitter); ok {
		if s.Permissions, err = a.Permissions(ctx, i); err != nil {
			return fmt.Errorf("permissions: %w", err)
		}
	}
	return nil
}

// readNamed reads wanted roles and bindings that are not in the cache: an administrator may
// have created them by hand.
func (r *runner) readNamed(ctx context.Context, s *registration.State) error {
	roles, bindings := registration.Names(*s)
	if len(roles) > 0 && r.roles == nil {
		return fmt.Errorf("add-ons of the family %s make no roles: %s", r.id, roles[0])
	}
	uncachedRoles, err := readMissing(ctx, r.Rights, r.roles, rolesAPI, roles)
	if err != nil {
		return err
	}
	uncachedBindings, err := readMissing(ctx, r.Rights, r.bindings, bindingsAPI, bindings)
	s.Roles, s.Bindings = append(s.Roles, uncachedRoles...), append(s.Bindings, uncachedBindings...)
	return err
}

// readMissing reads live those objects that are not cached, and returns those that exist.
func readMissing[T any, P object[T]](
	ctx context.Context, client dynamic.Interface, cached *group[T, P], resource schema.GroupVersionResource, keys []reconcile.Key,
) (out []*T, err error) {
	for _, key := range keys {
		if _, known := cached.Get(key); known {
			continue
		}
		o, err := typed.Get[T](ctx, client, resource, key.Namespace, key.Name)
		switch {
		case err == nil:
			out = append(out, o)
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return out, nil
}

// hosting returns the cluster that an instance runs on instead, or nil.
func (r *runner) hosting(addOn addonkit.AddOn, i addonkit.Instance) *deploy.Hosting {
	if h, ok := addOn.(addonkit.Hosted); ok {
		if name, hosted := h.HostingCluster(i); hosted {
			return &deploy.Hosting{Name: name, Cluster: r.cluster(name)}
		}
	}
	return nil
}

// reconcileRequest answers a certificate request of the add-on.
func (r *runner) reconcileRequest(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	csr := r.requests.get(key)
	if csr == nil {
		r.unanswered.Note(key, false)
		return reconcile.Result{}, nil
	}
	i, there := r.instance(marked(csr))
	if !there || i.Cluster == nil || !i.Cluster.Spec.HubAcceptsClient || !registration.Belongs(csr, i) {
		return reconcile.Result{}, nil
	}
	addOn, ok := r.find(i.AddOn)
	if !ok {
		return reconcile.Result{}, nil
	}
	unsigned, err := r.respond(ctx, addOn, i, csr)
	r.unanswered.Note(key, err != nil)
	if unsigned || apierrors.IsForbidden(err) {
		return r.answering.Execute(ctx, i.AddOn, reconcile.Plan{Events: []reconcile.Event{refused(csr, err)}, RequeueAfter: addonkit.RetryDelay})
	}
	return reconcile.Result{}, err
}

// refused returns the Event about a request that waits for a permission that the runner
// lacks, or for what it is signed with.
func refused(csr *certificatesv1.CertificateSigningRequest, err error) reconcile.Event {
	return reconcile.Event{
		Type: corev1.EventTypeWarning, Reason: ReasonRequestWaits, Once: true, Of: csr.Spec.SignerName,
		Message: "A certificate request for signer " + csr.Spec.SignerName + " waits: " + err.Error(),
	}
}

// respond approves or signs a request; unsigned is true if the error is why the add-on does
// not sign it.
func (r *runner) respond(
	ctx context.Context, addOn addonkit.AddOn, i addonkit.Instance, csr *certificatesv1.CertificateSigningRequest,
) (unsigned bool, err error) {
	if a, ok := addOn.(addonkit.Approver); ok && registration.Open(csr) {
		if a.Approve(ctx, i, csr) == nil {
			return false, r.update(ctx, registration.Approved(csr, r.Clock.Now()), "approval")
		}
		return false, nil // left to a person
	}
	if a, ok := addOn.(addonkit.Signer); ok && registration.ToSign(csr) {
		signed := csr.DeepCopy()
		if signed.Status.Certificate, err = a.Sign(ctx, i, csr); err != nil {
			return true, fmt.Errorf("signing certificate request %s: %w", csr.Name, err)
		}
		return false, r.update(ctx, signed, "status")
	}
	return false, nil
}

// update writes an answer; if another client answered first, that answer stays.
func (r *runner) update(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, subresource string) error {
	u, err := typed.ToUnstructured(csr)
	if err != nil {
		return err
	}
	_, err = r.Rights.Resource(certificates).Update(ctx, u, metav1.UpdateOptions{}, subresource)
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("answering certificate request %s: %w", csr.Name, err)
	}
	return nil
}
