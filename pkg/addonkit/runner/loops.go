// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/deploy"
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
	key := reconcile.Key{Namespace: i.AddOn.Namespace, Name: i.AddOn.Name}
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
	for _, key := range roles {
		if r.roles == nil {
			return fmt.Errorf("add-ons of the family %s make no roles: %s", r.id, key)
		}
		if _, known := r.roles.Get(key); known {
			continue
		}
		o, err := get[rbacv1.Role](ctx, r, rolesAPI, key)
		if err != nil {
			return err
		}
		if o != nil {
			s.Roles = append(s.Roles, o)
		}
	}
	for _, key := range bindings {
		if _, known := r.bindings.Get(key); known {
			continue
		}
		o, err := get[rbacv1.RoleBinding](ctx, r, bindingsAPI, key)
		if err != nil {
			return err
		}
		if o != nil {
			s.Bindings = append(s.Bindings, o)
		}
	}
	return nil
}

// get reads an object live; it returns nil if there is none.
func get[T any](ctx context.Context, r *runner, resource schema.GroupVersionResource, key reconcile.Key) (*T, error) {
	o, err := typed.Get[T](ctx, r.Rights, resource, key.Namespace, key.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}

// hosting returns the cluster that an instance runs on instead, or nil.
func (r *runner) hosting(addOn addonkit.AddOn, i addonkit.Instance) *deploy.Hosting {
	h, ok := addOn.(addonkit.Hosted)
	if !ok {
		return nil
	}
	name, hosted := h.HostingCluster(i)
	if !hosted {
		return nil
	}
	return &deploy.Hosting{Name: name, Cluster: r.cluster(name)}
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
	err := r.respond(ctx, addOn, i, csr)
	r.unanswered.Note(key, err != nil)
	if unsigned := (*signError)(nil); apierrors.IsForbidden(err) || errors.As(err, &unsigned) {
		return r.answering.Execute(ctx, i.AddOn, reconcile.Plan{Events: []reconcile.Event{refused(csr, err)}, RequeueAfter: addonkit.RetryDelay})
	}
	return reconcile.Result{}, err
}

// signError is why an add-on does not sign a request.
type signError struct{ error }

// Unwrap returns the cause.
func (e *signError) Unwrap() error { return e.error }

// refused returns the Event about a request that waits for a permission that the runner
// lacks, or for what it is signed with.
func refused(csr *certificatesv1.CertificateSigningRequest, err error) reconcile.Event {
	return reconcile.Event{
		Type: corev1.EventTypeWarning, Reason: ReasonRequestWaits, Once: true, Of: csr.Spec.SignerName,
		Message: "A certificate request for signer " + csr.Spec.SignerName + " waits: " + err.Error(),
	}
}

// respond approves or signs a request.
func (r *runner) respond(ctx context.Context, addOn addonkit.AddOn, i addonkit.Instance, csr *certificatesv1.CertificateSigningRequest) error {
	if a, ok := addOn.(addonkit.Approver); ok && registration.Open(csr) {
		if a.Approve(ctx, i, csr) == nil {
			return r.update(ctx, registration.Approved(csr, r.Clock.Now()), "approval")
		}
		return nil // left to a person
	}
	if a, ok := addOn.(addonkit.Signer); ok && registration.ToSign(csr) {
		certificate, err := a.Sign(ctx, i, csr)
		if err != nil {
			return &signError{fmt.Errorf("signing certificate request %s: %w", csr.Name, err)}
		}
		signed := csr.DeepCopy()
		signed.Status.Certificate = certificate
		return r.update(ctx, signed, "status")
	}
	return nil
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
