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

// Paths of the rules on what agents write into a status. The webhooks are asked about
// agents alone, so that they never stand between the hub and its own objects.
const (
	PathClusterStatus = "/validate-status-cluster-open-cluster-management-io-v1-managedcluster"
	PathWorkStatus    = "/validate-status-work-open-cluster-management-io-v1-manifestwork"
	PathAddOnStatus   = "/validate-status-addon-open-cluster-management-io-v1alpha1-managedclusteraddon"
)

// Bounds of what an agent says. What is above one already may stay, and may not grow.
const (
	maxClusterStatus = 128 << 10
	maxWorkStatus    = 768 << 10 // a work usually has 500 KiB of manifests at most, and etcd takes 1.5 MiB
	maxAddOnStatus   = 64 << 10
	maxConditions    = 64
	maxClaims        = 512
)

// hubConditions are those that the hub says of a cluster: to it, its agent, and whoever
// reads why a cluster was let in or not.
var hubConditions = []string{
	clusterv1.ConditionHubAccepted, clusterv1.ConditionClockSynced, clusterv1.ConditionDuplicateClusterName,
	clusterv1.ConditionCertificateRequestDenied, clusterv1.ConditionDeleting, clusterv1.ConditionImportSucceeded,
}

// hubAddOnConditions are those that the hub says of an add-on.
var hubAddOnConditions = []string{
	addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ConditionConfigured, addonv1alpha1.ConditionProgressing,
	addonv1alpha1.ConditionManifestApplied, addonv1alpha1.ConditionHostingManifestApplied, addonv1alpha1.ConditionHookManifestCompleted,
	addonv1alpha1.ConditionHostingClusterValidity, addonv1alpha1.ConditionTokenInfrastructureReady,
}

// validateClusterStatus leaves to an agent what only it knows: version, capacity,
// claims, and its own conditions.
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
		w.own(now.Name),
		w.conditions("status.conditions", now.Status.Conditions, old.Status.Conditions, hubConditions),
		w.same("status.managedNamespaces, besides their conditions", namespacesOf(now), namespacesOf(old)),
		w.count("status.clusterClaims", len(now.Status.ClusterClaims), len(old.Status.ClusterClaims), maxClaims),
		w.size(maxClusterStatus),
	)
}

// namespacesOf are the namespaces that the hub asks for, without what the agent says
// of them.
func namespacesOf(mc *clusterv1.ManagedCluster) []clusterv1.ClusterSetManagedNamespace {
	var out []clusterv1.ClusterSetManagedNamespace
	for _, n := range mc.Status.ManagedNamespaces {
		n.Conditions = nil
		out = append(out, n)
	}
	return out
}

// validateWorkStatus bounds what an agent says of its works; all of it is its own.
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
		w.own(now.Namespace),
		w.conditions("status.conditions", now.Status.Conditions, old.Status.Conditions, nil),
		w.count("status.resourceStatus.manifests", len(said), len(before), len(now.Spec.Workload.Manifests)),
		w.size(maxWorkStatus),
	)
	for i := range said {
		if problem == nil {
			problem = w.count(fmt.Sprintf("status.resourceStatus.manifests[%d].conditions", i), len(said[i].Conditions), 0, maxConditions)
		}
	}
	return nil, problem
}

// validateAddOnStatus leaves to an agent whether the add-on works and how it comes to
// its credentials. What the hub resolved, above all which configurations it is to have
// and who its agent is, is the hub's.
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
		w.own(now.Namespace),
		w.conditions("status.conditions", now.Status.Conditions, old.Status.Conditions, hubAddOnConditions),
		w.same("status.configReferences", now.Status.ConfigReferences, old.Status.ConfigReferences),
		w.same("status.supportedConfigs", now.Status.SupportedConfigs, old.Status.SupportedConfigs),
		w.same("status.namespace", now.Status.Namespace, old.Status.Namespace),
		w.same("status.healthCheck", now.Status.HealthCheck, old.Status.HealthCheck),
		w.registrations(now, old),
		w.size(maxAddOnStatus),
	)
}

// writer is an agent that writes a status.
type writer struct {
	r *admissionv1.AdmissionRequest
	// clusters are those whose agent it is; none for the agent of an add-on, which has
	// what rights its author gave it.
	clusters []string
	addOn    bool
}

// writerOf tells who an agent is; false for everybody else.
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

// first is the first problem.
func (writer) first(problems ...error) error {
	i := slices.IndexFunc(problems, func(err error) bool { return err != nil })
	if i < 0 {
		return nil
	}
	return problems[i]
}

// own wants the object to be that of the agent's one cluster.
func (w writer) own(cluster string) error {
	if w.addOn || (len(w.clusters) == 1 && w.clusters[0] == cluster) {
		return nil
	}
	return w.refuse("change the status of another cluster's object")
}

func (w writer) same(field string, now, old any) error {
	if reflect.DeepEqual(now, old) || (empty(now) && empty(old)) {
		return nil
	}
	return w.refuse("change " + field + ", which is the hub's")
}

func empty(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Slice && r.Len() == 0
}

func (w writer) count(field string, now, old, limit int) error {
	if now <= limit || now <= old {
		return nil
	}
	return w.refuse(fmt.Sprintf("write %d entries into %s; %d are the most", now, field, max(limit, old)))
}

// size bounds a status as JSON.
func (w writer) size(limit int) error {
	now, old := statusSize(w.r.Object.Raw), statusSize(w.r.OldObject.Raw)
	if now <= limit || now <= old {
		return nil
	}
	return w.refuse(fmt.Sprintf("let the status grow to %d bytes; %d are the most", now, limit))
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

// conditions keeps those of the hub as they are, and bounds the rest. A cluster that is
// not reachable is so by the word of the hub; its agent says that it is back.
func (w writer) conditions(field string, now, old []metav1.Condition, kept []string) error {
	for _, kind := range kept {
		if !reflect.DeepEqual(apimeta.FindStatusCondition(now, kind), apimeta.FindStatusCondition(old, kind)) {
			return w.refuse("change the condition " + kind + ", which is the hub's")
		}
	}
	return w.count(field, len(now), len(old), maxConditions)
}

// registrations lets the agent of a cluster say how the add-on comes to its access to
// the hub: by a certificate of the user that the hub named, or by a token of the account
// that the hub makes. It cannot say who else the agent is.
func (w writer) registrations(now, old *addonv1alpha1.ManagedClusterAddOn) error {
	const field = "status.registrations"
	if w.addOn && now.Status.KubeClientDriver != old.Status.KubeClientDriver {
		return w.refuse("change status.kubeClientDriver")
	}
	if len(now.Status.Registrations) != len(old.Status.Registrations) {
		return w.refuse("change which " + field + " there are, which is the hub's")
	}
	for i := range now.Status.Registrations {
		is, was := &now.Status.Registrations[i], &old.Status.Registrations[i]
		if is.SignerName == was.SignerName && reflect.DeepEqual(is.Subject, was.Subject) {
			continue
		}
		if w.addOn || is.SignerName != was.SignerName || is.SignerName != addonv1alpha1.KubeAPIServerSigner || !mayBe(is.Subject, now) {
			return w.refuse(fmt.Sprintf("change %s[%d], which is the hub's", field, i))
		}
	}
	return nil
}

// mayBe tells whether a subject is one that the agent of a cluster gives itself for an
// add-on: nobody in particular, the account, or a user of the add-on on this cluster.
func mayBe(s addonv1alpha1.Subject, a *addonv1alpha1.ManagedClusterAddOn) bool {
	who := identity.AddOn{Cluster: a.Namespace, Name: a.Name}
	agent, of := strings.CutPrefix(s.User, who.User(""))
	known := s.User == "" || s.User == who.TokenUser() || (of && agent != "" && !strings.Contains(agent, ":"))
	return known && len(s.OrganizationUnits) == 0 && !slices.ContainsFunc(s.Groups, func(g string) bool {
		return !slices.Contains(who.Groups(), g) && g != "system:authenticated"
	})
}
