// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"crypto/x509/pkix"
	"errors"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// wanted is the certificate request.
func wanted(p Pending, seconds int32) request.Want {
	return request.Want{
		Name: p.Request, Labels: map[string]string{clusterv1.LabelClusterName: p.Identity.Cluster}, Signer: clusterv1.SignerName,
		Subject: pkix.Name{CommonName: p.Identity.CommonName(), Organization: p.Identity.Organizations()},
		Key:     p.Key, Seconds: seconds,
	}
}

var (
	errThrottled = errors.New("the hub holds ten certificate requests of this cluster; no further one is made until some are gone")
	errLeaving   = errors.New("the hub is still removing a ManagedCluster of that name; it is made anew when that one is gone")
	errNoHub     = errors.New("the server does not know ManagedClusters: it is no hub of Open Cluster Management")
)

// requestLabels selects the requests of a cluster itself, not of its add-ons.
func requestLabels(id agent.Identity) string {
	return clusterv1.LabelClusterName + "=" + id.Cluster + ",!" + clusterv1.LabelAddOnName
}
