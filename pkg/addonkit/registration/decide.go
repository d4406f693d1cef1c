// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"errors"
	"fmt"

	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// ReasonNotOwned is that of the Event about an instance that no ClusterManagementAddOn
// owns: nothing is done for it.
const ReasonNotOwned = "AddOnNotOwned"

// adoption is how long the hub has to set the owner of a new instance before a missing
// owner is worth an Event.
const adoption = 10 * time.Second

// State is everything that a decision needs.
type State struct {
	// AddOn is the instance; nil if it is gone and only its objects are left.
	AddOn *addonv1alpha1.ManagedClusterAddOn
	// Cluster is its ManagedCluster; nil if there is none.
	Cluster *clusterv1.ManagedCluster
	// Options are those of the add-on.
	Options addonkit.Options
	// Registrar reports whether the add-on asks for credentials, which are Registrations.
	Registrar     bool
	Registrations []addonv1alpha1.RegistrationConfig
	// Namespace is where the add-on says it runs; "" leaves it to the instance.
	Namespace string
	// Permissions are what its agent may do.
	Permissions []addonkit.Permission
	// HealthCheck is where its health comes from; "" leaves that as it is. It is written here, first,
	// so that no agent looks for a lease meanwhile.
	HealthCheck addonv1alpha1.HealthCheckMode
	// Fault is the error that the add-on returned instead of these.
	Fault error
	// Labels are set on roles and bindings in addition to those of every add-on.
	Labels map[string]string
	// Roles and Bindings are those that carry the labels of the instance, and those with
	// the names that Names returns.
	Roles    []*rbacv1.Role
	Bindings []*rbacv1.RoleBinding
	// Now is the time of the decision.
	Now time.Time
}

// Decide returns the plan for one instance. It is pure. The object of the plan is nil if
// there is nothing to report.
func Decide(s State) reconcile.Plan {
	var plan reconcile.Plan
	if s.AddOn == nil {
		s.removeUnwanted(&plan, nil, nil)
		return plan
	}
	stranger := s.stranger()
	if stranger != "" {
		s.removeUnwanted(&plan, nil, nil)
	}
	switch {
	case s.AddOn.DeletionTimestamp != nil, s.Cluster != nil && s.Cluster.DeletionTimestamp != nil:
		// Credentials and permissions stay valid until the instance is gone.
		return plan
	case !owned(s.AddOn):
		if age := s.Now.Sub(s.AddOn.CreationTimestamp.Time); age < adoption {
			plan.RequeueAfter = min(adoption-age, adoption)
			return plan
		}
		plan.Events = []reconcile.Event{{Type: corev1.EventTypeWarning, Reason: ReasonNotOwned, Once: true,
			Message: "Nothing is done for the add-on: it has no owner reference to ClusterManagementAddOn " + s.AddOn.Name}}
		return plan
	}
	object := s.AddOn.DeepCopy()
	plan.Object = object
	if !slices.Equal(object.Status.SupportedConfigs, s.Options.Configs) {
		object.Status.SupportedConfigs = slices.Clone(s.Options.Configs)
	}
	if s.HealthCheck != "" {
		object.Status.HealthCheck.Mode = s.HealthCheck
	}
	switch {
	case stranger != "":
		s.setCondition(object, metav1.ConditionFalse, addonv1alpha1.ReasonPermissionConfigPending, stranger)
	case s.unplaced():
		s.setCondition(object, metav1.ConditionFalse, addonv1alpha1.ReasonPermissionConfigPending,
			"waiting for condition "+addonv1alpha1.ConditionConfigured+": the configurations may say where the add-on runs, and its credentials come there")
	default:
		s.register(&plan, object)
	}
	return plan
}

// stranger returns why the hub knows no agent of the cluster, or "" if it does. The
// certificates of an add-on outlive the cluster's acceptance, so its permissions have to be
// removed.
func (s State) stranger() string {
	name := s.AddOn.Namespace
	switch {
	case s.Cluster == nil:
		return fmt.Sprintf("there is no ManagedCluster %s, so nothing is deployed and no permissions are granted; "+
			"join the cluster under this name, or delete the add-on", name)
	case !s.Cluster.Spec.HubAcceptsClient:
		return fmt.Sprintf("cluster %s is not accepted, so its agents have no permissions on the hub until an administrator accepts it", name)
	}
	return ""
}

// register writes who the agent is, and grants its permissions.
func (s State) register(plan *reconcile.Plan, object *addonv1alpha1.ManagedClusterAddOn) {
	fault := s.Fault
	if fault == nil {
		fault = contradiction(s.Registrations)
	} else {
		plan.RequeueAfter = addonkit.RetryDelay
	}
	pending := errors.Is(fault, addonkit.ErrSubjectNotReady)
	reason := addonv1alpha1.ReasonSetPermissionApplied
	if fault == nil || pending {
		wanted := Wanted(s.AddOn, s.Registrations)
		if !s.Registrar {
			reason, object.Status.Registrations = addonv1alpha1.ReasonNilRegistration, nil
		} else {
			if !equality.Semantic.DeepEqual(object.Status.Registrations, wanted) {
				object.Status.Registrations = wanted
			}
			object.Status.Namespace = InstallNamespace(s.AddOn, s.Namespace)
		}
		if !pending {
			fault = s.permit(plan, wanted)
		}
	}
	switch {
	case pending:
		s.setCondition(object, metav1.ConditionFalse, addonv1alpha1.ReasonPermissionConfigPending, fault.Error())
	case fault != nil:
		s.setCondition(object, metav1.ConditionFalse, addonv1alpha1.ReasonSetPermissionFailed, addonv1alpha1.MessageSetPermissionFailed+" "+fault.Error())
	default:
		s.setCondition(object, metav1.ConditionTrue, reason, addonv1alpha1.MessageRegistrationConfigured)
	}
}

// contradiction returns what is wrong with the registrations by themselves: the agent of a
// cluster keeps one secret per signer.
func contradiction(registrations []addonv1alpha1.RegistrationConfig) error {
	at := map[string]int{}
	for i, r := range registrations {
		if r.SignerName == "" {
			return fmt.Errorf("registrations[%d].signerName: must be set; use %s for access to the hub", i, addonv1alpha1.KubeAPIServerSigner)
		}
		secret := strings.ReplaceAll(r.SignerName, "/", "-")
		if first, again := at[secret]; again {
			return fmt.Errorf(
				"registrations[%d].signerName: %s uses the secret of registrations[%d]; name each signer once, and make signers differ in more than / and -",
				i, r.SignerName, first,
			)
		}
		at[secret] = i
	}
	return nil
}

// unplaced reports whether the location of the credentials is not known yet: the add-on
// reads configurations, waits for them, and has none yet. An add-on that was registered
// before has a location, and moves when the rollout reaches it.
func (s State) unplaced() bool {
	return s.Registrar && s.Options.WaitConfigured && len(s.Options.Configs) > 0 && len(s.AddOn.Status.Registrations) == 0 &&
		!apimeta.IsStatusConditionTrue(s.AddOn.Status.Conditions, addonv1alpha1.ConditionConfigured)
}

func (s State) setCondition(object *addonv1alpha1.ManagedClusterAddOn, status metav1.ConditionStatus, reason, message string) {
	reconcile.SetCondition(&object.Status.Conditions, metav1.Condition{
		Type: addonv1alpha1.ConditionRegistrationApplied, Status: status, Reason: reason, Message: message, ObservedGeneration: object.Generation,
	}, s.Now)
}

// owned reports whether the ClusterManagementAddOn of the same name owns an instance;
// version and UID do not count.
func owned(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	return slices.ContainsFunc(addOn.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "ClusterManagementAddOn" && o.Name == addOn.Name
	})
}

// InstallNamespace returns where an add-on runs: own if it is set, else what the instance
// says.
func InstallNamespace(addOn *addonv1alpha1.ManagedClusterAddOn, own string) string {
	return cmp.Or(own, addOn.Spec.InstallNamespace, addonv1alpha1.DefaultInstallNamespace)
}

// HasToken reports whether an instance uses the token driver.
func HasToken(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	return addOn.Status.KubeClientDriver == addonv1alpha1.DriverTypeToken && kubeClient(addOn.Status.Registrations) != nil
}
