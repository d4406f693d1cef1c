// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// The states that the conditions of a cluster fold into.
const (
	ClusterPendingAccept = "PendingAccept"
	ClusterPendingCSR    = "PendingCSR"
	ClusterJoining       = "Joining"
	ClusterAvailable     = "Available"
	ClusterNotAvailable  = "NotAvailable"
	ClusterUnknown       = "Unknown"
	ClusterDenied        = "Denied"
	ClusterDeleting      = "Deleting"
)

// ListOptions say which clusters to list.
type ListOptions struct {
	Common
	// Hub is the hub.
	Hub *Cluster
	// Selector is a label selector.
	Selector string
	// Set keeps the members of a cluster set.
	Set string
	// Status keeps clusters in one state, in any case: available, unknown, or
	// pending for all that are not joined yet.
	Status string

	// requests asks for certificate requests also where every cluster has joined.
	requests bool
}

// Count is how many of a number of things are well.
type Count struct {
	Good  int `json:"good"`
	Total int `json:"total"`
}

// Amount is a resource that clusters have.
type Amount struct {
	Allocatable string `json:"allocatable,omitempty"`
	Capacity    string `json:"capacity,omitempty"`
}

// ClusterInfo is one managed cluster at a glance.
type ClusterInfo struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	// Message is why it is not available.
	Message string `json:"message,omitempty"`
	// Set is its exclusive cluster set.
	Set string `json:"set,omitempty"`
	// Version of Kubernetes.
	Version string `json:"version,omitempty"`
	CPU     Amount `json:"cpu"`
	Memory  Amount `json:"memory"`
	AddOns  Count  `json:"addons"`
	Works   Count  `json:"works"`
	// LastSeen is when its agent renewed the lease; nil when it never did.
	LastSeen *metav1.Time      `json:"lastSeen,omitempty"`
	Created  metav1.Time       `json:"created"`
	URLs     []string          `json:"urls,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Claims   map[string]string `json:"claims,omitempty"`
	Taints   []string          `json:"taints,omitempty"`
	// Clock is synced, skewed or empty.
	Clock string `json:"clock,omitempty"`
	// AgentVersion is what the agent says of itself with each renewal.
	AgentVersion string `json:"agentVersion,omitempty"`
}

// ListClusters lists managed clusters by name. It makes four lists, and a fifth
// when a cluster waits for its certificate, however many clusters there are.
func ListClusters(ctx context.Context, o ListOptions) ([]ClusterInfo, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	in, err := o.read(ctx)
	if err != nil {
		return nil, err
	}
	in.now = o.Hub.now(r.now())
	var out []ClusterInfo
	for i := range in.clusters {
		mc, err := typed.FromUnstructured[clusterv1.ManagedCluster](&in.clusters[i])
		if err != nil {
			return nil, err
		}
		info := in.info(mc)
		if o.keeps(&info) {
			out = append(out, info)
		}
	}
	slices.SortFunc(out, func(a, b ClusterInfo) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// keeps applies the filter on states.
func (o *ListOptions) keeps(c *ClusterInfo) bool {
	switch strings.ToLower(o.Status) {
	case "":
		return true
	case "pending":
		return c.Status == ClusterPendingAccept || c.Status == ClusterPendingCSR || c.Status == ClusterJoining
	}
	return strings.EqualFold(c.Status, o.Status)
}

// fleetState is what is read to judge all clusters.
type fleetState struct {
	// now is the hub's time.
	now                        time.Time
	clusters                   []unstructured.Unstructured
	addons, works, leases, csr map[string][]unstructured.Unstructured
}

func (o *ListOptions) read(ctx context.Context) (*fleetState, error) {
	selector := o.Selector
	if o.Set != "" {
		var err error
		if selector, err = o.inSet(ctx, selector); err != nil {
			return nil, err
		}
	}
	out := &fleetState{}
	var addons, works, beats []unstructured.Unstructured
	if err := listTogether(ctx, o.Hub,
		wanted{&out.clusters, query{resource: managedClusters, labels: selector}},
		wanted{&addons, query{resource: clusterAddOns}},
		wanted{&works, query{resource: manifestWorks}},
		wanted{&beats, query{resource: leases, fields: "metadata.name=" + clusterv1.LeaseName}},
	); err != nil {
		return nil, err
	}
	if len(out.clusters) == 0 {
		// Nothing at all is also what a cluster that is no hub answers.
		if err := needHub(ctx, o.Hub); err != nil {
			return nil, err
		}
	}
	out.addons, out.works, out.leases = byNamespace(addons), byNamespace(works), byNamespace(beats)
	return out, o.readRequests(ctx, out)
}

// readRequests reads certificate requests where a cluster waits for one.
func (o *ListOptions) readRequests(ctx context.Context, s *fleetState) error {
	waiting := slices.ContainsFunc(s.clusters, func(u unstructured.Unstructured) bool {
		accepted, _, _ := unstructured.NestedBool(u.Object, "spec", "hubAcceptsClient")
		return accepted && !conditionTrue(&u, clusterv1.ConditionJoined)
	})
	if !waiting && !o.requests {
		return nil
	}
	items, err := listAll(ctx, o.Hub, query{resource: signingRequests, labels: clusterv1.LabelClusterName + ",!" + clusterv1.LabelAddOnName})
	if err != nil {
		return explain("listing certificate requests", o.Hub, err)
	}
	s.csr = map[string][]unstructured.Unstructured{}
	for _, u := range items {
		name := u.GetLabels()[clusterv1.LabelClusterName]
		s.csr[name] = append(s.csr[name], u)
	}
	return nil
}

// inSet adds the selector of a cluster set to a label selector.
func (o *ListOptions) inSet(ctx context.Context, selector string) (string, error) {
	set, err := readSet(ctx, o.Hub, o.Set)
	if err != nil {
		return "", err
	}
	member, err := membersOf(set)
	if err != nil {
		return "", failed("reading the selector of managedclusterset "+o.Set, err, "")
	}
	return strings.Trim(selector+","+member, ","), nil
}

func byNamespace(items []unstructured.Unstructured) map[string][]unstructured.Unstructured {
	out := map[string][]unstructured.Unstructured{}
	for _, u := range items {
		out[u.GetNamespace()] = append(out[u.GetNamespace()], u)
	}
	return out
}

// info folds all that is known of one cluster.
func (s *fleetState) info(mc *clusterv1.ManagedCluster) ClusterInfo {
	c := ClusterInfo{Name: mc.Name, Set: mc.Labels[clusterv1.LabelClusterSet], Version: mc.Status.Version.Kubernetes, Created: mc.CreationTimestamp,
		Labels: mc.Labels}
	for _, u := range s.leases[mc.Name] {
		c.LastSeen, c.AgentVersion = renewed(&u), u.GetAnnotations()[clusterv1.AnnotationAgentVersion]
	}
	c.Status, c.Message = s.status(mc)
	c.CPU = amount(mc, clusterv1.ResourceCPU, func(q resource.Quantity) string { return q.String() })
	c.Memory = amount(mc, clusterv1.ResourceMemory, gibibytes)
	for _, u := range s.addons[mc.Name] {
		c.AddOns.add(conditionTrue(&u, "Available"))
	}
	for _, u := range s.works[mc.Name] {
		c.Works.add(conditionTrue(&u, workv1.ConditionApplied) && conditionTrue(&u, workv1.ConditionAvailable))
	}
	for _, client := range mc.Spec.ManagedClusterClientConfigs {
		if client.URL != "" {
			c.URLs = append(c.URLs, client.URL)
		}
	}
	for _, claim := range mc.Status.ClusterClaims {
		if c.Claims == nil {
			c.Claims = map[string]string{}
		}
		c.Claims[claim.Name] = claim.Value
	}
	for _, t := range mc.Spec.Taints {
		c.Taints = append(c.Taints, strings.TrimSuffix(t.Key+"="+t.Value, "=")+":"+string(t.Effect))
	}
	if clock := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionClockSynced); clock != nil {
		c.Clock = map[metav1.ConditionStatus]string{metav1.ConditionTrue: "synced", metav1.ConditionFalse: "skewed"}[clock.Status]
	}
	return c
}

func (c *Count) add(good bool) {
	c.Total++
	if good {
		c.Good++
	}
}

// status folds the conditions of a cluster into one word and why.
func (s *fleetState) status(mc *clusterv1.ManagedCluster) (string, string) {
	accepted := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionHubAccepted)
	available := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionAvailable)
	switch {
	case mc.DeletionTimestamp != nil:
		return ClusterDeleting, conditionText(mc.Status.Conditions, clusterv1.ConditionDeleting)
	case !mc.Spec.HubAcceptsClient && accepted != nil && accepted.Status == metav1.ConditionFalse:
		return ClusterDenied, oneLine(accepted.Message)
	case !mc.Spec.HubAcceptsClient:
		return ClusterPendingAccept, requestDenied(mc)
	case !apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionJoined) && (available == nil || available.Status != metav1.ConditionUnknown):
		return s.joining(mc)
	case available == nil:
		return ClusterJoining, ""
	case available.Status != metav1.ConditionUnknown && s.silent(mc) != "":
		return ClusterUnknown, s.silent(mc)
	case available.Status == metav1.ConditionTrue:
		return ClusterAvailable, ""
	case available.Status == metav1.ConditionFalse:
		return ClusterNotAvailable, oneLine(available.Message)
	}
	return ClusterUnknown, oneLine(available.Message)
}

// joining is the status of a cluster that is accepted and has not joined.
func (s *fleetState) joining(mc *clusterv1.ManagedCluster) (string, string) {
	for _, u := range s.csr[mc.Name] {
		if stateOf(&u) == StatePending {
			return ClusterPendingCSR, "certificatesigningrequest/" + u.GetName() + " waits for approval"
		}
	}
	if why := requestDenied(mc); why != "" {
		return ClusterPendingCSR, why
	}
	return ClusterJoining, conditionText(mc.Status.Conditions, clusterv1.ConditionHubAccepted)
}

// requestDenied tells why the last certificate request of a cluster failed.
func requestDenied(mc *clusterv1.ManagedCluster) string {
	if c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionCertificateRequestDenied); c != nil && c.Status == metav1.ConditionTrue {
		return oneLine(c.Message)
	}
	return ""
}

func conditionText(conditions []metav1.Condition, kind string) string {
	if c := apimeta.FindStatusCondition(conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
		return oneLine(c.Message)
	}
	return ""
}

func amount(mc *clusterv1.ManagedCluster, name clusterv1.ResourceName, text func(resource.Quantity) string) Amount {
	var a Amount
	if q, ok := mc.Status.Allocatable[name]; ok {
		a.Allocatable = text(q)
	}
	if q, ok := mc.Status.Capacity[name]; ok {
		a.Capacity = text(q)
	}
	return a
}

// gibibytes shows memory in whole or tenths of Gi.
func gibibytes(q resource.Quantity) string {
	gi := float64(q.Value()) / (1 << 30)
	if gi >= 10 || gi == float64(int64(gi)) {
		return fmt.Sprintf("%.0fGi", gi)
	}
	return fmt.Sprintf("%.1fGi", gi)
}

// leaseSlack is what a hub has to notice that a lease is late, and what clocks may
// differ.
const leaseSlack = 30 * time.Second

// leaseLimit is after how long without a renewal a cluster is Unknown.
func leaseLimit(mc *clusterv1.ManagedCluster) time.Duration {
	seconds := mc.Spec.LeaseDurationSeconds
	if seconds <= 0 {
		seconds = clusterv1.DefaultLeaseDurationSeconds
	}
	return time.Duration(seconds) * clusterv1.LeaseGraceFactor * time.Second
}

// silent says of a cluster that its hub calls well by what it heard long ago that
// nobody has heard of it since: a hub that does not run does not take back what it
// said. "" means that the lease is fresh, or the cluster new.
func (s *fleetState) silent(mc *clusterv1.ManagedCluster) string {
	limit := leaseLimit(mc)
	available := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionAvailable)
	since, text := available.LastTransitionTime.Time, "it has no lease"
	for i := range s.leases[mc.Name] {
		if at := arrived(&s.leases[mc.Name][i]); at != nil {
			since, text = at.Time, "lease not renewed"
		}
	}
	if age := s.now.Sub(since); age > limit+leaseSlack {
		return fmt.Sprintf("%s for %s (limit %s), and the hub has not noticed it", text, duration.HumanDuration(age), duration.HumanDuration(limit))
	}
	return ""
}

// renewed is when the agent says that it renewed a lease, by its own clock.
func renewed(lease *unstructured.Unstructured) *metav1.Time {
	text, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: at}
}

// arrived is when the hub stored the last renewal of a lease, by the hub's clock: the
// agent's may be wrong. Where that is not noted it is what the agent says.
func arrived(lease *unstructured.Unstructured) *metav1.Time {
	for _, entry := range lease.GetManagedFields() {
		if entry.Time != nil && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:renewTime"`) {
			return entry.Time
		}
	}
	return renewed(lease)
}
