// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/caller"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/refusal"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/origin"
	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// accountsNamespace is where the accounts are that the agent acts as: that of the add-on
// managed-serviceaccount, unless a configuration puts it elsewhere. The hub never names one.
const accountsNamespace = operatorv1.NamespaceAgentAddOn

// lookTimeout is how long the look at an account may take.
const lookTimeout = 10 * time.Second

// accounts says which ServiceAccounts of the cluster the agent acts as.
type accounts struct {
	client dynamic.NamespaceableResourceInterface
	// hub identifies the hub that the requests come from.
	hub string
}

// resolve returns the account with that name as a user of the cluster. It looks at the account each time:
// one that is deleted, or made anew by somebody else, is no longer acted for. Groups are left out
// because the API server adds those of the account by itself.
func (a accounts) resolve(ctx context.Context, name string) (caller.Caller, *refusal.Refusal) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	live, err := a.client.Namespace(accountsNamespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return caller.Caller{}, refusal.New(http.StatusNotFound, connectv1alpha1.CauseUnknownAccount,
			"the cluster has no ServiceAccount %s/%s, or not yet: the add-on managed-serviceaccount makes one for each ManagedServiceAccount",
			accountsNamespace, name)
	case err != nil:
		return caller.Caller{}, refusal.New(http.StatusBadGateway, connectv1alpha1.CauseTunnelBroken,
			"the agent cannot look at ServiceAccount %s/%s: %s", accountsNamespace, name, excerpt.Of(err.Error(), maxMessage))
	}
	switch hub, created := origin.Of(live); {
	case live.GetDeletionTimestamp() != nil:
		return caller.Caller{}, refusedAccount(name, "is being deleted")
	case !created:
		return caller.Caller{}, refusedAccount(name, "was not created for a ManagedServiceAccount")
	case hub != a.hub:
		return caller.Caller{}, refusedAccount(name, "was created for another hub, or before the address of this one changed")
	}
	return caller.Caller{User: "system:serviceaccount:" + accountsNamespace + ":" + name, UID: string(live.GetUID())}, nil
}

// refusedAccount refuses to act as an account.
func refusedAccount(name, why string) *refusal.Refusal {
	return refusal.New(http.StatusForbidden, connectv1alpha1.CauseAccountRefused,
		"the agent does not act as ServiceAccount %s/%s: it %s", accountsNamespace, name, why)
}

var accountsResource = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
