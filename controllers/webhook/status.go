// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Paths of the rules for what agents write into a status. The webhooks are called for agents
// only, so that they never block the hub's own writes.
const (
	PathClusterStatus = "/validate-status-cluster-open-cluster-management-io-v1-managedcluster"
	PathWorkStatus    = "/validate-status-work-open-cluster-management-io-v1-manifestwork"
	PathAddOnStatus   = "/validate-status-addon-open-cluster-management-io-v1alpha1-managedclusteraddon"
)

// Bounds of what an agent writes. What already exceeds one may stay, but must not grow.
const (
	maxClusterStatus = 128 << 10
	maxWorkStatus    = 768 << 10 // a work usually has 500 KiB of manifests at most, and etcd takes 1.5 MiB
	maxAddOnStatus   = 64 << 10
	maxConditions    = 64
	maxClaims        = 512
)

// hubConditions are the conditions of a cluster that only the hub sets; its loops, the agent
// and users rely on them.
var hubConditions = []string{
	clusterv1.ConditionHubAccepted, clusterv1.ConditionClockSynced, clusterv1.ConditionDuplicateClusterName,
	clusterv1.ConditionCertificateRequestDenied, clusterv1.ConditionDeleting, clusterv1.ConditionImportSucceeded,
}

// hubAddOnConditions are the conditions of an add-on that only the hub sets.
var hubAddOnConditions = []string{
	addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ConditionConfigured, addonv1alpha1.ConditionProgressing,
	addonv1alpha1.ConditionManifestApplied, addonv1alpha1.ConditionHostingManifestApplied, addonv1alpha1.ConditionHookManifestCompleted,
	addonv1alpha1.ConditionHostingClusterValidity, addonv1alpha1.ConditionTokenInfrastructureReady,
}

// validateClusterStatus lets an agent write what only it knows: version, capacity, claims,
// and its own conditions.
func validateClusterStatus(w writer, c clusterChange) error {
	now, old := &c.now.Status, &c.old.Status
	return cmp.Or(
		w.checkCluster(c.now.Name),
		w.checkConditions(now.Conditions, old.Conditions, hubConditions),
		w.checkUnchanged("status.managedNamespaces, besides their conditions", namespacesOf(c.now), namespacesOf(c.old)),
		w.checkCount("status.clusterClaims", len(now.ClusterClaims), len(old.ClusterClaims), maxClaims),
		w.checkSize(maxClusterStatus),
	)
}

// namespacesOf returns the namespaces that the hub requests, without the conditions that the
// agent reports for them.
func namespacesOf(mc *clusterv1.ManagedCluster) []clusterv1.ClusterSetManagedNamespace {
	var out []clusterv1.ClusterSetManagedNamespace
	for _, n := range mc.Status.ManagedNamespaces {
		n.Conditions = nil
		out = append(out, n)
	}
	return out
}

// validateWorkStatus limits the size of what an agent reports for its works; all of it
// belongs to the agent.
func validateWorkStatus(w writer, c change[workv1.ManifestWork]) error {
	said, before := c.now.Status.ResourceStatus.Manifests, c.old.Status.ResourceStatus.Manifests
	problem := cmp.Or(
		w.checkCluster(c.now.Namespace),
		w.checkConditions(c.now.Status.Conditions, c.old.Status.Conditions, nil),
		w.checkCount("status.resourceStatus.manifests", len(said), len(before), len(c.now.Spec.Workload.Manifests)),
		w.checkSize(maxWorkStatus),
	)
	for i := range said {
		if problem == nil {
			problem = w.checkCount(fmt.Sprintf("status.resourceStatus.manifests[%d].conditions", i), len(said[i].Conditions), 0, maxConditions)
		}
	}
	return problem
}

// validateAddOnStatus lets an agent write whether the add-on works and how it gets its
// credentials. What the hub resolved belongs to the hub, above all which configurations the
// add-on gets and the identity of its agent.
func validateAddOnStatus(w writer, c change[addonv1alpha1.ManagedClusterAddOn]) error {
	now, old := &c.now.Status, &c.old.Status
	return cmp.Or(
		w.checkCluster(c.now.Namespace),
		w.checkConditions(now.Conditions, old.Conditions, hubAddOnConditions),
		w.checkUnchanged("status.configReferences", now.ConfigReferences, old.ConfigReferences),
		w.checkUnchanged("status.supportedConfigs", now.SupportedConfigs, old.SupportedConfigs),
		w.checkUnchanged("status.namespace", now.Namespace, old.Namespace),
		w.checkUnchanged("status.healthCheck", now.HealthCheck, old.HealthCheck),
		w.checkRegistrations(c.now, c.old),
		w.checkSize(maxAddOnStatus),
	)
}

// writer is an agent that writes a status.
type writer struct {
	*admissionv1.AdmissionRequest
	// clusters are the clusters whose agent it is; none for the agent of an add-on, which has
	// the permissions that the author of the add-on gave it.
	clusters []string
	addOn    bool
}

// byAgent returns the rule for what agents write; others may write anything.
func byAgent[T any](check func(writer, change[T]) error) rule {
	return validating(func(_ context.Context, c change[T]) error {
		user := c.UserInfo
		clusters, agent := identity.Clusters(user.Groups)
		token := identity.AddOn{Cluster: c.Namespace, Name: c.Name}.TokenUser()
		if c.creates || (!agent && user.Username != token && !identity.IsAddOn(user.Username, user.Groups)) {
			return nil
		}
		return check(writer{c.AdmissionRequest, clusters, !agent}, c)
	})
}

func (w writer) refuse(format string, args ...any) error {
	what := schema.GroupResource{Group: w.Resource.Group, Resource: w.Resource.Resource + "/" + w.SubResource}
	return forbidden(what, w.Name, "agent %q cannot %s", w.UserInfo.Username, fmt.Sprintf(format, args...))
}

// checkCluster requires the object to belong to the agent's only cluster.
func (w writer) checkCluster(cluster string) error {
	if w.addOn || (len(w.clusters) == 1 && w.clusters[0] == cluster) {
		return nil
	}
	return w.refuse("change the status of another cluster's object")
}

func (w writer) checkUnchanged(field string, now, old any) error {
	if equality.Semantic.DeepEqual(now, old) {
		return nil
	}
	return w.refuse("change %s, which the hub owns", field)
}

func (w writer) checkCount(field string, now, old, limit int) error {
	if now <= limit || now <= old {
		return nil
	}
	return w.refuse("write %d entries to %s; at most %d are allowed", now, field, max(limit, old))
}

// checkSize limits the size of the status as JSON.
func (w writer) checkSize(limit int) error {
	now, old := statusSize(w.Object.Raw), statusSize(w.OldObject.Raw)
	if now <= limit || now <= old {
		return nil
	}
	return w.refuse("let the status grow to %d bytes; at most %d are allowed", now, limit)
}

func statusSize(raw []byte) int {
	var o struct {
		Status json.RawMessage `json:"status"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return 0 // the rule refuses what it cannot read
	}
	return len(o.Status)
}

// checkConditions refuses changes of the conditions in kept, and limits the number of the
// others. That a cluster is unreachable is reported by the hub; that it is back, by its
// agent.
func (w writer) checkConditions(now, old []metav1.Condition, kept []string) error {
	for _, kind := range kept {
		if !reflect.DeepEqual(apimeta.FindStatusCondition(now, kind), apimeta.FindStatusCondition(old, kind)) {
			return w.refuse("change the condition %s, which the hub owns", kind)
		}
	}
	return w.checkCount("status.conditions", len(now), len(old), maxConditions)
}

// checkRegistrations lets the agent of a cluster write how the add-on gets access to the hub:
// with a certificate for the user that the hub named, or with a token of the account that the
// hub creates. It cannot claim another identity for the agent of the add-on.
func (w writer) checkRegistrations(now, old *addonv1alpha1.ManagedClusterAddOn) error {
	const field = "status.registrations"
	if w.addOn && now.Status.KubeClientDriver != old.Status.KubeClientDriver {
		return w.refuse("change status.kubeClientDriver")
	}
	if len(now.Status.Registrations) != len(old.Status.Registrations) {
		return w.refuse("add or remove %s, which the hub owns", field)
	}
	for i := range now.Status.Registrations {
		is, was := &now.Status.Registrations[i], &old.Status.Registrations[i]
		if is.SignerName == was.SignerName && reflect.DeepEqual(is.Subject, was.Subject) {
			continue
		}
		if w.addOn || is.SignerName != was.SignerName || is.SignerName != addonv1alpha1.KubeAPIServerSigner || !canBeSubject(is.Subject, now) {
			return w.refuse("change %s[%d], which the hub owns", field, i)
		}
	}
	return nil
}

// canBeSubject reports whether the agent of a cluster may set a subject for an add-on: an
// empty one, the account, or a user of the add-on on this cluster.
func canBeSubject(s addonv1alpha1.Subject, a *addonv1alpha1.ManagedClusterAddOn) bool {
	who := identity.AddOn{Cluster: a.Namespace, Name: a.Name}
	agent, of := strings.CutPrefix(s.User, who.User(""))
	known := s.User == "" || s.User == who.TokenUser() || (of && agent != "" && !strings.Contains(agent, ":"))
	return known && len(s.OrganizationUnits) == 0 && !slices.ContainsFunc(s.Groups, func(g string) bool {
		return !slices.Contains(who.Groups(), g) && g != "system:authenticated"
	})
}
