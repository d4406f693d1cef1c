// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	// maxVerdicts is how many requests one pass answers.
	maxVerdicts = 32
	// soon is the delay before repeating a pass that could not do everything.
	soon = time.Second
)

// State holds everything a decision needs.
type State struct {
	// Cluster is nil when no ManagedCluster has the name.
	Cluster *clusterv1.ManagedCluster
	// Requests are those labelled with the cluster's name, oldest first.
	Requests []Request
	// Alive is true when the cluster's lease is fresh and its agent has joined: the lease
	// created by the hub says nothing about an agent.
	Alive bool
	// Heard is when this process last saw the lease renewed; zero when it saw no renewal.
	// Period is the expected time between renewals.
	Heard  time.Time
	Period time.Duration
	// AutoApprove lists the users whose first requests are approved automatically.
	AutoApprove []string
	// Now is the time of the decision.
	Now time.Time
}

// Verdict is an answer to one request.
type Verdict struct {
	// CSR is the request with the answer added to its conditions.
	CSR *certificatesv1.CertificateSigningRequest
	// Event reports the answer on the ManagedCluster.
	Event reconcile.Event
	// Spends are the tokens an approval uses up one use of.
	Spends []Token
}

// Decision is a plan for the ManagedCluster, and what happens to its requests.
type Decision struct {
	reconcile.Plan
	// Verdicts are written before the plan is executed.
	Verdicts []Verdict
	// Leftovers are requests to delete unchanged, after the plan.
	Leftovers []*certificatesv1.CertificateSigningRequest
}

// Decide is pure. A request that is already answered is never answered again: a user who
// answered first decides.
func Decide(s State) Decision {
	d := Decision{}
	var next time.Duration
	d.Leftovers, next = leftovers(s)
	if s.Cluster != nil && s.Cluster.DeletionTimestamp == nil {
		mc := s.Cluster.DeepCopy()
		d.Object = mc
		recordHolder(s, mc)
		approvals, waits := verdicts(s, mc)
		// A flood of requests to be denied holds up no approval.
		d.Verdicts = approvals
		d.Events = strangerEvents(d.Leftovers)
		events, look := evaluateName(s, mc)
		d.Events = append(d.Events, events...)
		next = sooner(sooner(sooner(next, evaluateRequests(s, mc)), untilReleased(s, mc)), look)
		if waits && len(d.Verdicts) > 0 {
			next = soon
		}
	}
	d.Verdicts = append(d.Verdicts, refusals(s)...)
	if len(d.Verdicts) > maxVerdicts {
		d.Verdicts, next = d.Verdicts[:maxVerdicts], soon
	}
	if d.Object != nil {
		for _, v := range d.Verdicts {
			d.Events = append(d.Events, v.Event)
		}
	}
	d.RequeueAfter = next
	return d
}

// sooner returns the shorter of two delays; zero means never.
func sooner(a, b time.Duration) time.Duration {
	return reconcile.Result{RequeueAfter: a}.Sooner(reconcile.Result{RequeueAfter: b}).RequeueAfter
}

// strangerEvents returns Events that report, once each, which agents of other clusters sent the
// requests being deleted.
func strangerEvents(gone []*certificatesv1.CertificateSigningRequest) []reconcile.Event {
	told := map[string]bool{}
	var out []reconcile.Event
	for _, csr := range gone {
		user := csr.Spec.Username
		if originOf(Request{CSR: csr}) != stranger || told[user] {
			continue
		}
		told[user] = true
		cluster := csr.Labels[clusterv1.LabelClusterName]
		out = append(out, reconcile.Event{
			Type: corev1.EventTypeWarning, Reason: "ForeignCertificateRequest", Namespace: cluster, Once: true, Of: user,
			Message: fmt.Sprintf("%s, the agent of another cluster, sends certificate requests in the name of cluster %s; they are deleted. "+
				"If this continues, deny that agent's cluster", quote(user), cluster),
		})
	}
	return out
}

// verdicts answers a cluster's open requests whose tokens are valid. waits is true when some
// have not been checked yet. A request by an agent other than that of the reporting cluster
// stays open: an agent that changed its namespace or its mode has another name, and an OCM
// agent that is denied waits forever.
func verdicts(s State, mc *clusterv1.ManagedCluster) (out []Verdict, waits bool) {
	for _, r := range s.Requests {
		switch {
		case r.Fault != nil || r.Refusal.Reason != "" || isAnswered(r.CSR) || contests(s, mc, r):
		case r.Waits:
			waits = true
		case r.MayRenew:
			out = append(out, approval(s, r, "The agent renews its own certificate"))
		case slices.Contains(s.AutoApprove, r.CSR.Spec.Username) && !isNameHeld(s, mc, r):
			out = append(out, approval(s, r, fmt.Sprintf("%s may register clusters without manual approval", r.CSR.Spec.Username)))
		}
	}
	return out, waits
}

func approval(s State, r Request, why string) Verdict {
	v := verdictOf(s, r, certificatesv1.CertificateApproved, Refusal{clusterv1.ReasonAutoApproved, why})
	v.Spends = r.Limited
	return v
}

// refusals denies the open requests whose token is not valid for them.
func refusals(s State) []Verdict {
	var out []Verdict
	for _, r := range s.Requests {
		if r.Fault == nil && r.Refusal.Reason != "" && !isAnswered(r.CSR) {
			out = append(out, verdictOf(s, r, certificatesv1.CertificateDenied, r.Refusal))
		}
	}
	return out
}

// isNameHeld reports whether a cluster has joined under the name, in which case the right to
// register clusters is no longer enough: the request could take over the identity of a
// cluster that is only away. The last holder of the name gets a new certificate once the old
// one has expired; everything else waits for a user.
func isNameHeld(s State, mc *clusterv1.ManagedCluster, r Request) bool {
	if s.Alive {
		return true
	}
	if apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionJoined) == nil {
		return false
	}
	end, err := time.Parse(time.RFC3339, mc.Annotations[clusterv1.AnnotationCertificateExpires])
	return mc.Annotations[clusterv1.AnnotationAgentName] != r.Agent.Name || err != nil || s.Now.Before(end)
}

// untilReleased returns how long until the last certificate expires of a cluster whose holder asks
// for a new one: until then the request is held. Zero means there is nothing to wait for.
func untilReleased(s State, mc *clusterv1.ManagedCluster) time.Duration {
	end, err := time.Parse(time.RFC3339, mc.Annotations[clusterv1.AnnotationCertificateExpires])
	if err != nil || !end.After(s.Now) || !slices.ContainsFunc(s.Requests, func(r Request) bool {
		return r.Fault == nil && r.Refusal.Reason == "" && !isAnswered(r.CSR) && slices.Contains(s.AutoApprove, r.CSR.Spec.Username) &&
			mc.Annotations[clusterv1.AnnotationAgentName] == r.Agent.Name
	}) {
		return 0
	}
	return end.Sub(s.Now)
}

// recordHolder records in annotations who got the last certificate, with which join token, and when
// it expires. The request approved last counts, not the one sent last: a user may have
// accepted another agent since the holder asked.
func recordHolder(s State, mc *clusterv1.ManagedCluster) {
	issued := slices.DeleteFunc(slices.Clone(s.Requests), func(r Request) bool { return r.Expires == nil })
	slices.SortStableFunc(issued, func(a, b Request) int {
		return cmp.Or(answeredAt(a.CSR).Compare(answeredAt(b.CSR)), byPerson(a.CSR)-byPerson(b.CSR), writtenLater(a.CSR, b.CSR))
	})
	for _, r := range issued {
		metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationAgentName, r.Agent.Name)
		metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationCertificateExpires, r.Expires.UTC().Format(time.RFC3339))
		if r.Token != "" {
			metav1.SetMetaDataAnnotation(&mc.ObjectMeta, clusterv1.AnnotationJoinedBy, r.Token)
		}
	}
}

// byPerson is 1 for a request that this loop did not approve. Such a request wins among those
// approved in the same second, which is the precision of approval times.
func byPerson(csr *certificatesv1.CertificateSigningRequest) int {
	if c := findCondition(csr, certificatesv1.CertificateApproved); c != nil && c.Reason == clusterv1.ReasonAutoApproved {
		return 0
	}
	return 1
}

// writtenLater orders two requests with equal times by their last writes, which add their
// certificates. It is 0 when the versions cannot be compared.
func writtenLater(a, b *certificatesv1.CertificateSigningRequest) int {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	if err != nil {
		return 0
	}
	return order
}

// verdictOf returns the request with an approval or a denial added.
func verdictOf(s State, r Request, kind certificatesv1.RequestConditionType, why Refusal) Verdict {
	csr := r.CSR.DeepCopy()
	csr.SetGroupVersionKind(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"))
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: kind, Status: corev1.ConditionTrue, Reason: why.Reason, Message: why.Message, LastUpdateTime: metav1.NewTime(s.Now),
	})
	event := reconcile.Event{Type: corev1.EventTypeNormal, Reason: "ManagedClusterCSRAutoApproved", Namespace: r.Agent.Cluster, Message: why.Message}
	if kind == certificatesv1.CertificateDenied {
		event.Type, event.Reason = corev1.EventTypeWarning, why.Reason
		event.Message = fmt.Sprintf("Certificate request %s of agent %s was denied: %s", csr.Name, r.Agent.Name, why.Message)
	}
	return Verdict{CSR: csr, Event: event}
}

// contests reports whether an agent requests a name held by another agent whose lease is
// fresh. An agent never contests itself.
func contests(s State, mc *clusterv1.ManagedCluster, r Request) bool {
	holder := mc.Annotations[clusterv1.AnnotationAgentName]
	return s.Alive && holder != "" && holder != r.Agent.Name
}

// evaluateName maintains the condition DuplicateClusterName, which is true while such a request
// waits. It returns the Event for its start, and when to check again whether the holder is
// still there: a fresh lease may belong to an agent that is gone.
func evaluateName(s State, mc *clusterv1.ManagedCluster) ([]reconcile.Event, time.Duration) {
	have := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionDuplicateClusterName)
	// The one waiting longest, so that a flood changes nothing.
	at := slices.IndexFunc(s.Requests, func(r Request) bool {
		return r.Fault == nil && r.Refusal.Reason == "" && !isAnswered(r.CSR) && r.CSR.DeletionTimestamp == nil && contests(s, mc, r)
	})
	c := metav1.Condition{Type: clusterv1.ConditionDuplicateClusterName}
	if at < 0 {
		if have != nil {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, clusterv1.ReasonNoDuplicate, "One agent holds the name"
			hub.SetCondition(mc, s.Now, c)
		}
		return nil, 0
	}
	c.Status, c.Reason = metav1.ConditionTrue, clusterv1.ReasonDuplicateClusterName
	rival := s.Requests[at]
	seen := s.Heard.After(rival.CSR.CreationTimestamp.Time)
	c.Message = duplicateMessage(rival, mc.Annotations[clusterv1.AnnotationAgentName], seen)
	var events []reconcile.Event
	if have == nil || have.Status != metav1.ConditionTrue {
		events = append(events, reconcile.Event{Type: corev1.EventTypeWarning, Reason: c.Reason, Namespace: mc.Name, Message: c.Message, After: reconcile.Status})
	}
	hub.SetCondition(mc, s.Now, c)
	if seen {
		return events, 0
	}
	return events, s.Period
}

// duplicateMessage names both agents. seen is true when the holder has renewed the lease
// since the other agent asked.
func duplicateMessage(r Request, holder string, seen bool) string {
	state := "which has not renewed its lease since then and may be gone"
	if seen {
		state = "which has renewed its lease since then: both are running"
	}
	cluster := r.Agent.Cluster
	return fmt.Sprintf("Agent %s asks for the name of cluster %s by certificate request %s; it is held by agent %s, %s. "+
		"If it is the same cluster, let the new agent take over: kubectl ocm accept %s --replace; if not, join it under another name",
		r.Agent.Name, cluster, r.CSR.Name, holder, state, cluster)
}
