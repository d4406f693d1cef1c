// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/access"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// askTimeout bounds all requests to one hub.
const askTimeout = 10 * time.Second

var clustersResource = clusterv1.GroupVersion.WithResource("managedclusters")

// askHub returns why a hub cannot be used; empty when it can, which means that the bootstrap
// kubeconfig has its rights there and the ManagedCluster is absent or accepted.
func (c *Controller) askHub(ctx context.Context, config *kubeconfig.Config, cluster string) string {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	link, err := agent.NewLink(config, c.config.UserAgent)
	if err != nil {
		return err.Error()
	}
	defer link.Close()
	switch answer := access.Ask(ctx, link.Client, access.Bootstrap()); {
	case answer.Problem != "":
		return answer.Problem
	case answer.Refused:
		return "the bootstrap kubeconfig lacks: " + strings.Join(answer.Missing, ", ")
	}
	found, err := typed.Get[clusterv1.ManagedCluster](ctx, link.Client, clustersResource, "", cluster)
	switch {
	case apierrors.IsNotFound(err) && isAboutObject(err, cluster):
		return ""
	case apierrors.IsNotFound(err):
		return "the server does not serve ManagedClusters: it is not an Open Cluster Management hub"
	case err != nil:
		return fmt.Sprintf("reading ManagedCluster %s: %v", cluster, err)
	case !found.Spec.HubAcceptsClient:
		return fmt.Sprintf("ManagedCluster %s exists but is not accepted: accept or delete it on that hub", cluster)
	}
	return ""
}

// isAboutObject reports whether an error is about the object of that name, rather than its whole
// kind.
func isAboutObject(err error, name string) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Details != nil && status.ErrStatus.Details.Name == name
}
