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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/identity"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/lease"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// gather reads the cluster and its requests from the caches. It asks the API
// server one thing, live: whether the requester of an open renewal may renew.
func (c *Controller) gather(ctx context.Context, name string) (State, error) {
	s := State{AutoApprove: c.config.AutoApprove, Now: c.config.Clock.Now()}
	mc := &clusterv1.ManagedCluster{}
	err := c.reader.Get(ctx, client.ObjectKey{Name: name}, mc)
	if apierrors.IsNotFound(err) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading managedcluster %s: %w", name, err)
	}
	s.Cluster = mc
	s.Alive = apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionJoined) &&
		c.config.Arrivals.Fresh(name, lease.Grace(mc))
	list := &certificatesv1.CertificateSigningRequestList{}
	if err := c.reader.List(ctx, list, client.MatchingLabels{clusterv1.LabelClusterName: name}); err != nil {
		return s, fmt.Errorf("listing the certificate requests of cluster %s: %w", name, err)
	}
	for i := range list.Items {
		csr := &list.Items[i]
		agent, err := check(csr, name)
		if err != nil {
			continue
		}
		r := Request{CSR: csr, Agent: agent}
		if !answered(csr) && csr.Spec.Username == agent.User() {
			if r.MayRenew, err = c.mayRenew(ctx, csr, name); err != nil {
				return s, err
			}
		}
		s.Requests = append(s.Requests, r)
	}
	slices.SortFunc(s.Requests, inOrder)
	return s, nil
}

// inOrder puts the oldest first. Requests of one second go by name: the last
// word of two that come in any order would change with each pass, and each
// change brings the next pass.
func inOrder(a, b Request) int {
	return cmp.Or(a.CSR.CreationTimestamp.Compare(b.CSR.CreationTimestamp.Time), strings.Compare(a.CSR.Name, b.CSR.Name))
}

// check tells whether the CSR is one of the cluster's agents for a client
// certificate; others are not ours to answer.
func check(csr *certificatesv1.CertificateSigningRequest, cluster string) (identity.Agent, error) {
	if csr.Spec.SignerName != clusterv1.SignerName {
		return identity.Agent{}, fmt.Errorf("signer %s: %w", csr.Spec.SignerName, identity.ErrNoAgentRequest)
	}
	allowed := []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}
	for _, usage := range csr.Spec.Usages {
		if !slices.Contains(allowed, usage) {
			return identity.Agent{}, fmt.Errorf("usage %s: %w", usage, identity.ErrNoAgentRequest)
		}
	}
	return identity.ParseRequest(csr.Spec.Request, cluster)
}

var reviews = authorizationv1.SchemeGroupVersion.WithResource("subjectaccessreviews")

// mayRenew asks whether the requester, with all that it was known by, may renew
// the certificates of this cluster.
func (c *Controller) mayRenew(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, cluster string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SubjectAccessReview"},
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups,
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: clusterv1.RegisterGroup, Resource: "managedclusters", Subresource: clusterv1.SubresourceClientCertificates,
				Verb: "renew", Name: cluster,
			},
		},
	}
	for key, values := range csr.Spec.Extra {
		if review.Spec.Extra == nil {
			review.Spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		review.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	u, err := typed.ToUnstructured(review)
	if err != nil {
		return false, err
	}
	answer, err := c.config.Client.Resource(reviews).Create(ctx, u, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("reviewing the renewal %s: %w", csr.Name, err)
	}
	got, err := typed.FromUnstructured[authorizationv1.SubjectAccessReview](answer)
	if err != nil {
		return false, err
	}
	return got.Status.Allowed, nil
}
