// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	confighub "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/review"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/gate"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// reviewsAtOnce is how many reviews are open at the same time.
const reviewsAtOnce = 8

// rightText words a right: "create managedclusters", "patch deployments/status web".
func rightText(r *authorizationv1.ResourceAttributes) string {
	out := r.Verb + " " + r.Resource
	if r.Subresource != "" {
		out += "/" + r.Subresource
	}
	if r.Name != "" {
		out += " " + r.Name
	}
	return out
}

// lacking returns those of the rights that a user does not have, as the API server says.
func lacking(ctx context.Context, c *fleet.Cluster, user *authenticationv1.UserInfo, rights []authorizationv1.ResourceAttributes) ([]string, error) {
	allowed := make([]bool, len(rights))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for i := range rights {
		group.Go(func() (err error) {
			allowed[i], _, err = review.Access(ctx, c.Client, user, review.Right{Resource: &rights[i]})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []string
	for i := range rights {
		if !allowed[i] {
			out = append(out, rightText(&rights[i]))
		}
	}
	return out, nil
}

// accountOf returns the user that a ServiceAccount is.
func accountOf(namespace, name string) *authenticationv1.UserInfo {
	return &authenticationv1.UserInfo{
		Username: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}

// joining is whom clusters are while they ask to join.
var joining = []struct {
	what string
	user *authenticationv1.UserInfo
}{
	{"join tokens", accountOf(confighub.Namespace, confighub.BootstrapServiceAccount)},
	{"bootstrap tokens", &authenticationv1.UserInfo{
		Username: "system:bootstrap:000000",
		Groups:   []string{"system:bootstrappers", clusterv1.GroupBootstrap, "system:authenticated"},
	}},
}

// asking is what a cluster does while it asks to join: it creates its ManagedCluster and a certificate
// request, and follows both. Few rights stand for all: they come from one role.
var asking = []authorizationv1.ResourceAttributes{
	{Verb: "create", Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"},
	{Verb: "watch", Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"},
	{Verb: "create", Group: clusterv1.GroupVersion.Group, Resource: "managedclusters"},
	{Verb: "get", Group: clusterv1.GroupVersion.Group, Resource: "managedclusters"},
}

// admitsClusters reports rights that the holders of tokens lack to ask to join. Another operator
// leaves it to its users whom they give which rights.
func (h *hubCheck) admitsClusters(ctx context.Context) ([]Finding, error) {
	if h.runner == nil && h.hosted == "" || h.others {
		return nil, nil
	}
	var out []Finding
	for _, who := range joining {
		missing, err := lacking(ctx, h.o.Hub, who.user, asking)
		switch {
		case apierrors.IsForbidden(err):
			return []Finding{warning(CodeHubAdmits, "whether clusters may ask to join cannot be checked", fleet.OneLine(err.Error()), CheckAsAdmin.On(h.o.Hub))}, nil
		case err != nil:
			return out, fleet.Explain("asking for the rights of "+who.user.Username, h.o.Hub, err)
		case len(missing) > 0:
			out = append(out, failure(CodeHubAdmits, "clusters with "+who.what+" may not ask to join", "they lack: "+fleet.Listed(missing), h.fix()))
		}
	}
	if out == nil {
		out = good(CodeHubAdmits, "clusters may ask to join")
	}
	return out, nil
}

// copying is what the add-on manager does to copy tokens beside ClusterProfiles.
var copying = []authorizationv1.ResourceAttributes{
	{Verb: "list", Resource: "secrets"}, {Verb: "watch", Resource: "secrets"}, {Verb: "get", Resource: "secrets"},
	{Verb: "create", Resource: "secrets"}, {Verb: "patch", Resource: "secrets"}, {Verb: "delete", Resource: "secrets"},
}

// copiesTokens reports rights that the add-on manager lacks to copy the tokens of ManagedServiceAccounts beside
// ClusterProfiles. It waits for them, and programs that look for the tokens find none.
func (h *hubCheck) copiesTokens(ctx context.Context) ([]Finding, error) {
	if h.others || h.hosted != "" {
		return nil, nil
	}
	cm, err := typed.Get[operatorv1.ClusterManager](ctx, h.o.Hub.Client, fleet.ClusterManagers, "", operatorv1.DefaultClusterManagerName)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fleet.Explain("reading clustermanager/"+operatorv1.DefaultClusterManagerName, h.o.Hub, err)
	case !copiesAreWanted(cm.Spec):
		return nil, nil
	}
	user := accountOf(confighub.ComponentNamespace, confighub.AddOnManager)
	missing, err := lacking(ctx, h.o.Hub, user, copying)
	switch {
	case apierrors.IsForbidden(err):
		return []Finding{warning(CodeHubCopies, "whether tokens may be copied cannot be checked", fleet.OneLine(err.Error()), CheckAsAdmin.On(h.o.Hub))}, nil
	case err != nil:
		return nil, fleet.Explain("asking for the rights of "+user.Username, h.o.Hub, err)
	case len(missing) == 0:
		return good(CodeHubCopies, "tokens may be copied beside ClusterProfiles"), nil
	}
	f := failure(CodeHubCopies, "no tokens are copied beside ClusterProfiles", user.Username+" may not "+fleet.Listed(missing), AllowCopies.On(h.o.Hub))
	binding, err := typed.Get[rbacv1.ClusterRoleBinding](ctx, h.o.Hub.Client, fleet.ClusterBindings, "", confighub.CredentialsRole)
	if apierrors.IsNotFound(err) || err == nil && len(binding.Subjects) > 0 {
		f.Fix = h.fix() // the role is not as it was, or the binding is gone
	} else if err != nil {
		return nil, fleet.Explain("reading clusterrolebinding "+confighub.CredentialsRole, h.o.Hub, err)
	}
	return []Finding{f}, nil
}

// copiesAreWanted reports whether both gates are on that the copies need.
func copiesAreWanted(s operatorv1.ClusterManagerSpec) bool {
	clusters, addOns := s.RegistrationConfiguration, s.AddOnManagerConfiguration
	return clusters != nil && isOn(clusters.FeatureGates, gate.ClusterProfile) && addOns != nil && isOn(addOns.FeatureGates, gate.ManagedServiceAccount)
}

// isOn reports whether a gate that is off by default is on.
func isOn(gates []operatorv1.FeatureGate, name string) bool {
	return slices.Contains(gates, operatorv1.FeatureGate{Feature: name, Mode: operatorv1.FeatureGateModeTypeEnable})
}
