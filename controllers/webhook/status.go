// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
func (s *Server) validateClusterStatus(_ context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
	now, old, err := objects[clusterv1.ManagedCluster](r)
	if err != nil || old == nil {
		return nil, err
	}
	w, ok := writerOf(r)
	if !ok {
		return nil, nil
	}
	return nil, w.first(
		w.checkCluster(now.Name),
		w.checkConditions("status.conditions", now.Status.Conditions, old.Status.Conditions, hubConditions),
		w.checkUnchanged("status.managedNamespaces, besides their conditions", namespacesOf(now), namespacesOf(old)),
		w.checkCount("status.clusterClaims", len(now.Status.ClusterClaims), len(old.Status.ClusterClaims), maxClaims),
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
func (s *Server) validateWorkStatus(_ context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
	now, old, err := objects[workv1.ManifestWork](r)
	if err != nil || old == nil {
		return nil, err
	}
	w, ok := writerOf(r)
	if !ok {
		return nil, nil
	}
	said, before := now.Status.ResourceStatus.Manifests, old.Status.ResourceStatus.Manifests
	problem := w.first(
		w.checkCluster(now.Namespace),
		w.checkConditions("status.conditions", now.Status.Conditions, old.Status.Conditions, nil),
		w.checkCount("status.resourceStatus.manifests", len(said), len(before), len(now.Spec.Workload.Manifests)),
		w.checkSize(maxWorkStatus),
	)
	for i := range said {
		if problem == nil {
			problem = w.checkCount(fmt.Sprintf("status.resourceStatus.manifests[%d].conditions", i), len(said[i].Conditions), 0, maxConditions)
		}
	}
	return nil, problem
}

// validateAddOnStatus lets an agent write whether the add-on works and how it gets its
// credentials. What the hub resolved belongs to the hub, above all which configurations the
// add-on gets and the identity of its agent.
func (s *Server) validateAddOnStatus(_ context.Context, r *admissionv1.AdmissionRequest) ([]operation, error) {
	now, old, err := objects[addonv1alpha1.ManagedClusterAddOn](r)
	if err != nil || old == nil {
		return nil, err
	}
	w, ok := writerOf(r)
	if !ok {
		return nil, nil
	}
	return nil, w.first(
		w.checkCluster(now.Namespace),
		w.checkConditions("status.conditions", now.Status.Conditions, old.Status.Conditions, hubAddOnConditions),
		w.checkUnchanged("status.configReferences", now.Status.ConfigReferences, old.Status.ConfigReferences),
		w.checkUnchanged("status.supportedConfigs", now.Status.SupportedConfigs, old.Status.SupportedConfigs),
		w.checkUnchanged("status.namespace", now.Status.Namespace, old.Status.Namespace),
		w.checkUnchanged("status.healthCheck", now.Status.HealthCheck, old.Status.HealthCheck),
		w.checkRegistrations(now, old),
		w.checkSize(maxAddOnStatus),
	)
}

// writer is an agent that writes a status.
type writer struct {
	r *admissionv1.AdmissionRequest
	// clusters are the clusters whose agent it is; none for the agent of an add-on, which has
	// the permissions that the author of the add-on gave it.
	clusters []string
	addOn    bool
}

// writerOf returns the agent that makes the request; false if the requester is no agent.
func writerOf(r *admissionv1.AdmissionRequest) (writer, bool) {
	clusters, agent := identity.Clusters(r.UserInfo.Groups)
	w := writer{r: r, clusters: clusters, addOn: !agent}
	token := identity.AddOn{Cluster: r.Namespace, Name: r.Name}.TokenUser()
	return w, agent || r.UserInfo.Username == token || identity.IsAddOn(r.UserInfo.Username, r.UserInfo.Groups)
}

func (w writer) refuse(what string) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: w.r.Resource.Group, Resource: w.r.Resource.Resource + "/" + w.r.SubResource}, w.r.Name,
		fmt.Errorf("agent %q cannot %s", w.r.UserInfo.Username, what))
}

// first returns the first error that is not nil.
func (writer) first(problems ...error) error {
	i := slices.IndexFunc(problems, func(err error) bool { return err != nil })
	if i < 0 {
		return nil
	}
	return problems[i]
}

// checkCluster requires the object to belong to the agent's only cluster.
func (w writer) checkCluster(cluster string) error {
	if w.addOn || (len(w.clusters) == 1 && w.clusters[0] == cluster) {
		return nil
	}
	return w.refuse("change the status of another cluster's object")
}

func (w writer) checkUnchanged(field string, now, old any) error {
	if reflect.DeepEqual(now, old) || (empty(now) && empty(old)) {
		return nil
	}
	return w.refuse("change " + field + ", which the hub owns")
}

func empty(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Slice && r.Len() == 0
}

func (w writer) checkCount(field string, now, old, limit int) error {
	if now <= limit || now <= old {
		return nil
	}
	return w.refuse(fmt.Sprintf("write %d entries to %s; at most %d are allowed", now, field, max(limit, old)))
}

// checkSize limits the size of the status as JSON.
func (w writer) checkSize(limit int) error {
	now, old := statusSize(w.r.Object.Raw), statusSize(w.r.OldObject.Raw)
	if now <= limit || now <= old {
		return nil
	}
	return w.refuse(fmt.Sprintf("let the status grow to %d bytes; at most %d are allowed", now, limit))
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
func (w writer) checkConditions(field string, now, old []metav1.Condition, kept []string) error {
	for _, kind := range kept {
		if !reflect.DeepEqual(apimeta.FindStatusCondition(now, kind), apimeta.FindStatusCondition(old, kind)) {
			return w.refuse("change the condition " + kind + ", which the hub owns")
		}
	}
	return w.checkCount(field, len(now), len(old), maxConditions)
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
		return w.refuse("add or remove " + field + ", which the hub owns")
	}
	for i := range now.Status.Registrations {
		is, was := &now.Status.Registrations[i], &old.Status.Registrations[i]
		if is.SignerName == was.SignerName && reflect.DeepEqual(is.Subject, was.Subject) {
			continue
		}
		if w.addOn || is.SignerName != was.SignerName || is.SignerName != addonv1alpha1.KubeAPIServerSigner || !canBeSubject(is.Subject, now) {
			return w.refuse(fmt.Sprintf("change %s[%d], which the hub owns", field, i))
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
