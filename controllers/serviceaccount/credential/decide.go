// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// state is everything that a decision about one profile depends on.
type state struct {
	// Key is the profile; its name is that of the cluster.
	Key reconcile.Key
	// Profile is the UID of the profile; empty if there is none, or it is not to have copies.
	Profile types.UID
	// InCluster is true when the namespace is that of a ManagedCluster.
	InCluster bool
	// Accounts are the ManagedServiceAccounts of the cluster whose tokens are to be copied.
	Accounts []account
	// Copies are those that are controlled by a profile of this name in the namespace.
	Copies []replica
}

// account is a ManagedServiceAccount to copy the token of.
type account struct {
	Name string
	// Source is the Secret with its token, if the account owns one.
	Source *source
	// Copy is the Secret with the name of the copy, if there is one; Content is what it is to hold,
	// nil while it holds that.
	Copy    *replica
	Content *content
}

// reasonNotCopied is the reason of the Event on a profile beside which a token is missing.
const reasonNotCopied = "CredentialNotCopied"

// again is when a Secret of somebody else is looked at again, as those are not watched.
const again = 10 * time.Minute

// needs reports whether the content of an account's Secret has to be read.
func (s state) needs(a account) bool {
	return s.Profile != "" && !s.InCluster && s.fault(a) == "" && a.Source != nil &&
		(a.Copy == nil || s.owns(a.Copy) && !a.isCurrent())
}

// owns reports whether a Secret is a copy for this very profile.
func (s state) owns(r *replica) bool {
	return r.Genuine && r.Profile == s.Key.Name && r.ProfileUID == s.Profile
}

func (a account) isCurrent() bool {
	return a.Copy.Digest == a.Source.Digest && len(a.Copy.Surplus) == 0
}

// fault returns why no copy of a token is written; empty if nothing is wrong.
func (s state) fault(a account) string {
	name := authenticationv1beta1.CopyName(s.Key.Name, a.Name)
	switch {
	case len(validation.IsDNS1123Subdomain(name)) > 0 || len(validation.IsValidLabelValue(name)) > 0:
		return fmt.Sprintf("the name of the copy would be longer than %d characters; choose a shorter name for the ManagedServiceAccount",
			validation.LabelValueMaxLength)
	case s.InCluster:
		return "namespace " + s.Key.Namespace + " is that of a cluster, whose agent could read it; bind the set in another namespace"
	case a.Source != nil && a.Source.Fault != "":
		return fmt.Sprintf("Secret %s/%s: %s", s.Key.Name, a.Name, a.Source.Fault)
	case a.Copy == nil || s.owns(a.Copy):
		return ""
	case a.Copy.Genuine && a.Copy.Profile == s.Key.Name: // of an earlier profile, with which it goes
		return ""
	}
	return fmt.Sprintf("Secret %s/%s is no copy of it and is left alone; rename one of them", s.Key.Namespace, name)
}

// decide is pure.
func decide(s state) reconcile.Plan {
	plan := reconcile.Plan{Order: reconcile.Independent}
	wanted := map[string]bool{}
	for _, a := range s.Accounts {
		if s.Profile == "" {
			break
		}
		wanted[authenticationv1beta1.CopyName(s.Key.Name, a.Name)] = !s.InCluster
		if fault := s.fault(a); fault != "" {
			plan.RequeueAfter = again
			plan.Events = append(plan.Events, reconcile.Event{
				Type: corev1.EventTypeWarning, Reason: reasonNotCopied, Once: true, Of: a.Name,
				Message: fmt.Sprintf("The token of ManagedServiceAccount %s/%s is not copied: %s", s.Key.Name, a.Name, fault),
			})
			continue
		}
		if s.needs(a) && a.Content != nil {
			plan.Writes = append(plan.Writes, s.write(a))
		}
	}
	for _, r := range s.Copies {
		if r.Genuine && !wanted[r.Name] && (s.Profile == "" || s.owns(&r)) {
			plan.Writes = append(plan.Writes, reconcile.Remove{Target: targetOf(r)})
		}
	}
	return plan
}

func targetOf(r replica) reconcile.Target {
	return reconcile.Target{Resource: secrets, Namespace: r.Namespace, Name: r.Name, UID: r.UID, Version: r.Version}
}

// write creates or renews a copy.
func (s state) write(a account) reconcile.Write {
	if a.Copy != nil {
		data := map[string]any{authenticationv1beta1.SecretKeyToken: a.Content.Token, authenticationv1beta1.SecretKeyCA: a.Content.CA}
		for _, key := range a.Copy.Surplus {
			data[key] = nil
		}
		return reconcile.Patch{Target: targetOf(*a.Copy), Body: map[string]any{"data": data}}
	}
	name := authenticationv1beta1.CopyName(s.Key.Name, a.Name)
	controls := true
	return reconcile.Create{Object: &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Key.Namespace, Name: name, Labels: map[string]string{authenticationv1beta1.LabelSyncedFrom: name},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: multiclusterv1alpha1.GroupVersion.String(), Kind: "ClusterProfile", Name: s.Key.Name, UID: s.Profile, Controller: &controls,
			}},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{authenticationv1beta1.SecretKeyToken: a.Content.Token, authenticationv1beta1.SecretKeyCA: a.Content.CA},
	}}
}
