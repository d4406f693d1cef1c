// SPDX-License-Identifier: Apache-2.0

package cluster

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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
)

// The states that the conditions of a cluster are folded into.
const (
	PendingAccept = "PendingAccept"
	PendingCSR    = "PendingCSR"
	Joining       = "Joining"
	Available     = "Available"
	NotAvailable  = "NotAvailable"
	Unknown       = "Unknown"
	Denied        = "Denied"
	Deleting      = "Deleting"
)

// State is everything read to derive the state of all clusters.
type State struct {
	// Now is the hub's time.
	Now time.Time
	// Clusters are the managed clusters, as they were read.
	Clusters []unstructured.Unstructured
	// addons, Works, Leases and Requests are keyed by the name of the cluster.
	addons, Works, Leases, Requests map[string][]unstructured.Unstructured
}

// Gather reads everything the state of the clusters is derived from.
func (o *ListOptions) Gather(ctx context.Context) (*State, error) {
	selector, err := o.selector(ctx)
	if err != nil {
		return nil, err
	}
	out := &State{}
	var addons, works, beats []unstructured.Unstructured
	named := ""
	if o.Name != "" {
		named = "metadata.name=" + o.Name
	}
	if err := fleet.ListTogether(ctx, o.Hub,
		fleet.Into(&out.Clusters, fleet.Query{Resource: fleet.ManagedClusters, Labels: selector, Fields: named}),
		fleet.Into(&addons, fleet.Query{Resource: fleet.ClusterAddOns, Namespace: o.Name}),
		fleet.Into(&works, fleet.Query{Resource: fleet.ManifestWorks, Namespace: o.Name}),
		fleet.Into(&beats, fleet.Query{Resource: fleet.Leases, Namespace: o.Name, Fields: "metadata.name=" + clusterv1.LeaseName}),
	); err != nil {
		return nil, err
	}
	if len(out.Clusters) == 0 {
		// A cluster that is not a hub returns no clusters either.
		return out, fleet.NeedHub(ctx, o.Hub)
	}
	namespace := (*unstructured.Unstructured).GetNamespace
	out.addons, out.Works, out.Leases = grouped(addons, namespace), grouped(works, namespace), grouped(beats, namespace)
	return out, o.readRequests(ctx, out)
}

// readRequests reads certificate requests if any cluster waits for one.
func (o *ListOptions) readRequests(ctx context.Context, s *State) error {
	waiting := slices.ContainsFunc(s.Clusters, func(u unstructured.Unstructured) bool {
		accepted, _, _ := unstructured.NestedBool(u.Object, "spec", "hubAcceptsClient")
		return accepted && !fleet.ConditionTrue(&u, clusterv1.ConditionJoined)
	})
	if !waiting && !o.Requests {
		return nil
	}
	items, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.SigningRequests, Labels: clusterv1.LabelClusterName + ",!" + clusterv1.LabelAddOnName})
	if err != nil {
		return fleet.Explain("listing certificate requests", o.Hub, err)
	}
	s.Requests = grouped(items, func(u *unstructured.Unstructured) string { return u.GetLabels()[clusterv1.LabelClusterName] })
	return nil
}

// selector returns the label selector, with that of the cluster set added to it.
func (o *ListOptions) selector(ctx context.Context) (string, error) {
	if o.Set == "" {
		return o.Selector, nil
	}
	set, err := ReadSet(ctx, o.Hub, o.Set)
	if err != nil {
		return "", err
	}
	member, err := MembersOf(set)
	if err != nil {
		return "", fleet.Fail("reading the selector of managedclusterset "+o.Set, err, nil)
	}
	return strings.Trim(o.Selector+","+member, ","), nil
}

func grouped(items []unstructured.Unstructured, by func(*unstructured.Unstructured) string) map[string][]unstructured.Unstructured {
	out := map[string][]unstructured.Unstructured{}
	for _, u := range items {
		key := by(&u)
		out[key] = append(out[key], u)
	}
	return out
}

// Info folds everything known of one cluster into its summary.
func (s *State) Info(mc *clusterv1.ManagedCluster) Info {
	c := Info{Name: mc.Name, Set: mc.Labels[clusterv1.LabelClusterSet], Version: mc.Status.Version.Kubernetes, Created: mc.CreationTimestamp,
		Labels: mc.Labels, Claims: map[string]string{}}
	for _, u := range s.Leases[mc.Name] {
		c.LastSeen, c.AgentVersion = Renewed(&u), u.GetAnnotations()[clusterv1.AnnotationAgentVersion]
	}
	c.Status, c.Message = s.status(mc)
	c.CPU = amount(mc, clusterv1.ResourceCPU, func(q resource.Quantity) string { return q.String() })
	c.Memory = amount(mc, clusterv1.ResourceMemory, gibibytes)
	for _, u := range s.addons[mc.Name] {
		c.AddOns.Add(fleet.ConditionTrue(&u, "Available"))
	}
	for _, u := range s.Works[mc.Name] {
		c.Works.Add(fleet.ConditionTrue(&u, workv1.ConditionApplied) && fleet.ConditionTrue(&u, workv1.ConditionAvailable))
	}
	for _, client := range mc.Spec.ManagedClusterClientConfigs {
		if client.URL != "" {
			c.URLs = append(c.URLs, client.URL)
		}
	}
	for _, claim := range mc.Status.ClusterClaims {

		c.Claims[claim.Name] = claim.Value
	}
	for _, t := range mc.Spec.Taints {
		c.Taints = append(c.Taints, strings.TrimSuffix(t.Key+"="+t.Value, "=")+":"+string(t.Effect))
	}
	c.Tunnel = TunnelOf(mc.Status.Conditions)
	if clock := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionClockSynced); clock != nil {
		c.Clock = map[metav1.ConditionStatus]string{metav1.ConditionTrue: "synced", metav1.ConditionFalse: "skewed"}[clock.Status]
	}
	return c
}

// status folds the conditions of a cluster into one word and the reason.
func (s *State) status(mc *clusterv1.ManagedCluster) (string, string) {
	accepted := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionHubAccepted)
	available := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionAvailable)
	switch {
	case mc.DeletionTimestamp != nil:
		return Deleting, ConditionText(mc.Status.Conditions, clusterv1.ConditionDeleting)
	case !mc.Spec.HubAcceptsClient && accepted != nil && accepted.Status == metav1.ConditionFalse:
		return Denied, fleet.OneLine(accepted.Message)
	case !mc.Spec.HubAcceptsClient:
		return PendingAccept, RequestDenied(mc)
	case !apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionJoined) && (available == nil || available.Status != metav1.ConditionUnknown):
		return s.joining(mc)
	case available == nil:
		return Joining, ""
	case available.Status != metav1.ConditionUnknown && s.Silent(mc) != "":
		return Unknown, s.Silent(mc)
	case available.Status == metav1.ConditionTrue:
		return Available, ""
	case available.Status == metav1.ConditionFalse:
		return NotAvailable, fleet.OneLine(available.Message)
	}
	return Unknown, fleet.OneLine(available.Message)
}

// joining returns the status of a cluster that is accepted and has not joined.
func (s *State) joining(mc *clusterv1.ManagedCluster) (string, string) {
	for _, u := range s.Requests[mc.Name] {
		if request.StateOf(&u) == request.StatePending {
			return PendingCSR, "certificatesigningrequest/" + u.GetName() + " waits for approval"
		}
	}
	if why := RequestDenied(mc); why != "" {
		return PendingCSR, why
	}
	return Joining, ConditionText(mc.Status.Conditions, clusterv1.ConditionHubAccepted)
}

// RequestDenied returns why the last certificate request of a cluster failed.
func RequestDenied(mc *clusterv1.ManagedCluster) string {
	if c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionCertificateRequestDenied); c != nil && c.Status == metav1.ConditionTrue {
		return fleet.OneLine(c.Message)
	}
	return ""
}

// ConditionText returns the message of a condition that is not True, in one line; "" when it
// is True or missing.
func ConditionText(conditions []metav1.Condition, kind string) string {
	if c := apimeta.FindStatusCondition(conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
		return fleet.OneLine(c.Message)
	}
	return ""
}

// ConditionStatus returns the status of a condition; "" when it is missing.
func ConditionStatus(conditions []metav1.Condition, kind string) string {
	if c := apimeta.FindStatusCondition(conditions, kind); c != nil {
		return string(c.Status)
	}
	return ""
}

// leaseSlack allows for the time a hub needs to notice a late lease, and for clock
// differences.
const leaseSlack = 30 * time.Second

// LeaseLimit returns how long a lease may go without renewal before the cluster is Unknown.
func LeaseLimit(mc *clusterv1.ManagedCluster) time.Duration {
	seconds := mc.Spec.LeaseDurationSeconds
	if seconds <= 0 {
		seconds = clusterv1.DefaultLeaseDurationSeconds
	}
	return time.Duration(seconds) * clusterv1.LeaseGraceFactor * time.Second
}

// Silent returns a message for a cluster that its hub still calls available although its lease
// is long overdue: a hub that does not run does not update its conditions. "" means that the
// lease is fresh, or the cluster new.
func (s *State) Silent(mc *clusterv1.ManagedCluster) string {
	limit := LeaseLimit(mc)
	available := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionAvailable)
	since, text := available.LastTransitionTime.Time, "it has no lease"
	for i := range s.Leases[mc.Name] {
		if at := Arrived(&s.Leases[mc.Name][i]); at != nil {
			since, text = at.Time, "lease not renewed"
		}
	}
	if age := s.Now.Sub(since); age > limit+leaseSlack {
		return fmt.Sprintf("%s for %s (limit %s), and the hub has not noticed it", text, duration.HumanDuration(age), duration.HumanDuration(limit))
	}
	return ""
}

// Renewed returns when the agent renewed a lease, by its own clock.
func Renewed(lease *unstructured.Unstructured) *metav1.Time {
	text, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: at}
}

// Arrived returns when the hub stored the last renewal of a lease, by the hub's clock, because
// the agent's may be wrong. When that is not recorded, it returns the agent's time.
func Arrived(lease *unstructured.Unstructured) *metav1.Time {
	for _, entry := range lease.GetManagedFields() {
		if entry.Time != nil && entry.FieldsV1 != nil && strings.Contains(entry.FieldsV1.GetRawString(), `"f:renewTime"`) {
			return entry.Time
		}
	}
	return Renewed(lease)
}

// EverJoined reports whether an agent of the cluster has ever had a certificate. The condition
// is reset when the acceptance is withdrawn; the hub's record stays.
func EverJoined(mc *clusterv1.ManagedCluster) bool {
	return mc.Annotations[clusterv1.AnnotationAgentName] != "" || apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionJoined)
}

// Certified reports whether the agent's certificate is valid as far as the hub knows: then
// acceptance is all that the cluster needs.
func Certified(mc *clusterv1.ManagedCluster, now time.Time) bool {
	if at, err := time.Parse(time.RFC3339, mc.Annotations[clusterv1.AnnotationCertificateExpires]); err == nil {
		return now.Before(at)
	}
	return mc.Spec.HubAcceptsClient || EverJoined(mc)
}

// Alive reports whether the agent of an accepted cluster reports.
func Alive(mc *clusterv1.ManagedCluster) bool {
	c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionAvailable)
	return mc.Spec.HubAcceptsClient && c != nil && c.Status != metav1.ConditionUnknown && EverJoined(mc)
}
