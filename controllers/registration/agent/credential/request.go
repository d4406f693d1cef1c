// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"crypto/x509/pkix"
	"errors"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// newRequest returns the certificate request to create.
func newRequest(p Pending, seconds int32) request.Want {
	return request.Want{
		Name: p.Request, Labels: map[string]string{clusterv1.LabelClusterName: p.Identity.Cluster}, Signer: clusterv1.SignerName,
		Subject: pkix.Name{CommonName: p.Identity.CommonName(), Organization: p.Identity.Organizations()},
		Key:     p.Key, Seconds: seconds,
	}
}

var (
	errThrottled = errors.New("the hub holds ten certificate requests of this cluster; no more are made until some are gone")
	errLeaving   = errors.New("the hub is still removing a ManagedCluster of that name; a new one is created once that one is gone")
	errNoHub     = errors.New("the server does not serve ManagedClusters: it is not an Open Cluster Management hub")
)

// requestLabels selects the requests of a cluster itself, not those of its add-ons.
func requestLabels(id agent.Identity) string {
	return clusterv1.LabelClusterName + "=" + id.Cluster + ",!" + clusterv1.LabelAddOnName
}
