// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/lease"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// maxLooks is how many open requests one pass checks with the API server, so that flooding
// one cluster does not hold up the others.
const maxLooks = 16

// gather reads the cluster and its requests from the caches. It asks the API server two
// things: whether the sender of an open renewal may renew, and the current state of the token
// of a request about to be approved automatically.
func (c *Controller) gather(ctx context.Context, name string) (s State, err error) {
	s = State{AutoApprove: c.config.AutoApprove, Now: c.config.Clock.Now(), Requests: c.requests.Of(name)}
	if s.Cluster, err = hub.FindCluster(ctx, c.reader, name); err != nil {
		return s, err
	}
	if s.Cluster != nil {
		c.gatherCluster(&s)
	}
	looks, admits := 0, c.admitting(name)
	// Newest first: those are the ones agents wait for.
	for i := len(s.Requests) - 1; i >= 0; i-- {
		r := &s.Requests[i]
		if r.Expires != nil {
			r.Token = c.tokens.idOf(r.CSR)
		}
		if r.Fault != nil || isAnswered(r.CSR) {
			continue
		}
		r.Refusal = refusalOf(r.CSR, name, c.tokens.Get, admits)
		renewal, listed := r.CSR.Spec.Username == r.Agent.User(), slices.Contains(s.AutoApprove, r.CSR.Spec.Username)
		if s.Cluster == nil || r.Refusal.Reason != "" || (!renewal && !listed) {
			continue
		}
		if looks++; looks > maxLooks {
			r.Waits = true
			continue
		}
		if err := c.checkLive(ctx, r, renewal, admits); err != nil {
			return s, err
		}
	}
	return s, nil
}

// gatherCluster reads when the agent of an existing cluster was last heard from.
func (c *Controller) gatherCluster(s *State) {
	mc, grace := s.Cluster, lease.Grace(s.Cluster)
	s.Alive = apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionJoined) && c.config.Arrivals.Fresh(mc.Name, grace)
	s.Period = grace / clusterv1.LeaseGraceFactor
	if beat, ok := c.config.Arrivals.Get(mc.Name); ok && !beat.First {
		s.Heard = beat.Arrived
	}
}

// checkLive checks one request with the API server.
func (c *Controller) checkLive(ctx context.Context, r *Request, renewal bool, admits func(Token) bool) (err error) {
	if renewal {
		r.MayRenew, err = c.mayRenew(ctx, r.CSR, r.Agent.Cluster)
		return err
	}
	found := map[string]Token{}
	for _, credential := range r.CSR.Spec.Extra[clusterv1.ExtraCredentialID] {
		t, ok, err := c.readLiveToken(ctx, credential)
		if err != nil {
			return err
		}
		if ok {
			found[credential] = t
			if t.Limit != 0 {
				r.Limited = append(r.Limited, t)
			}
		}
	}
	r.Refusal = refusalOf(r.CSR, r.Agent.Cluster, func(credential string) (Token, bool) {
		t, ok := found[credential]
		return t, ok
	}, admits)
	return nil
}

// inOrder sorts oldest first. Requests of the same second are sorted by name: in an unstable
// order the last one would change with each pass, and each change triggers the next pass.
func inOrder(a, b Request) int {
	return cmp.Or(a.CSR.CreationTimestamp.Compare(b.CSR.CreationTimestamp.Time), strings.Compare(a.CSR.Name, b.CSR.Name))
}

var reviews = authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews")

// mayRenew asks the API server whether the requester, with its full identity, may renew this
// cluster's certificates.
func (c *Controller) mayRenew(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, cluster string) (bool, error) {
	u, err := typed.ToUnstructured(renewalReview(csr, cluster))
	if err != nil {
		return false, err
	}
	answer, err := c.config.Client.Resource(reviews).Create(ctx, u, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("reviewing the renewal %s: %w", csr.Name, err)
	}
	allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed, nil
}

// renewalReview is the access review mayRenew sends.
func renewalReview(csr *certificatesv1.CertificateSigningRequest, cluster string) *authorizationv1.SubjectAccessReview {
	out := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: map[string]authorizationv1.ExtraValue{},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: clusterv1.RegisterGroup, Resource: "managedclusters", Subresource: clusterv1.SubresourceClientCertificates,
				Verb: "renew", Name: cluster,
			},
		},
	}
	for key, values := range csr.Spec.Extra {
		out.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	return out
}
