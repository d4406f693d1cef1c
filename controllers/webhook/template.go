// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"k8s.io/apimachinery/pkg/runtime/schema"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// PathValidateTemplate is the path of the rule for what AddOnTemplates request on the hub.
const PathValidateTemplate = "/validate-addon-open-cluster-management-io-v1alpha1-addontemplate"

// validateTemplate limits a template to the rights of its author: the hub binds roles,
// approves and signs for the template with its own rights, which a user must not gain just by
// writing a template. Every change of a spec is checked, because new manifests use the rights
// that the template already has.
func (s *Server) validateTemplate(ctx context.Context, c change[addonv1alpha1.AddOnTemplate]) error {
	if c.now.DeletionTimestamp != nil || reflect.DeepEqual(c.now.Spec, c.old.Spec) {
		return nil
	}
	for i := range c.now.Spec.Registration {
		for _, need := range needsOf(&c.now.Spec.Registration[i]) {
			ok, err := s.o.Hub.Allowed(ctx, c.UserInfo, need.right)
			if err != nil {
				return err
			}
			if !ok {
				return forbidden(schema.GroupResource{Group: addonv1alpha1.GroupName, Resource: addonv1alpha1.ResourceTemplate}, c.now.Name,
					"spec.registration[%d]: user %q cannot have the hub %s; the template must be written by someone who may, or the right granted with: %s",
					i, c.UserInfo.Username, need.what, need.grant(c.UserInfo.Username))
			}
		}
	}
	return nil
}

// need is a right that the author of a template must have for something that the hub does for
// it.
type need struct {
	right authorizationv1.ResourceAttributes
	what  string
}

// grant returns the command that grants the right to a user.
func (n need) grant(user string) string {
	a := n.right
	kind, at := "clusterrole", ""
	if a.Namespace != "" {
		kind, at = "role", " -n "+a.Namespace
	}
	resource := schema.GroupResource{Group: a.Group, Resource: a.Resource}
	name := strings.Join([]string{"addon", a.Verb, a.Resource, strings.NewReplacer("/", "-", ":", "-").Replace(a.Name)}, "-")
	return fmt.Sprintf("kubectl%s create %s %s --verb=%s --resource=%s --resource-name=%s && kubectl%s create %sbinding %s --%s=%s --user=%s",
		at, kind, name, a.Verb, resource, a.Name, at, kind, name, kind, name, user)
}

// needsOf returns the rights that the author of a registration must have.
func needsOf(g *addonv1alpha1.RegistrationSpec) []need {
	var out []need
	if g.KubeClient != nil {
		for _, p := range g.KubeClient.HubPermissions {
			if c := p.CurrentCluster; c != nil {
				out = append(out, bindNeed("", "ClusterRole", c.ClusterRoleName))
			}
			if o := p.SingleNamespace; o != nil {
				out = append(out, bindNeed(o.Namespace, o.RoleRef.Kind, o.RoleRef.Name))
			}
		}
	}
	if c := g.CustomSigner; c != nil {
		out = append(out, signerNeed(c.SignerName, "approve"), signerNeed(c.SignerName, "sign"))
		if ca := c.SigningCA; ca.Name != "" {
			namespace := cmp.Or(ca.Namespace, operatorv1.NamespaceHub)
			out = append(out, need{authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "get", Resource: "secrets", Name: ca.Name},
				fmt.Sprintf("sign with Secret %s/%s", namespace, ca.Name)})
		}
	}
	return out
}

// bindNeed returns the right to bind a role in a namespace; the empty namespace means all,
// for a role that is bound in the namespace of every cluster.
func bindNeed(namespace, kind, name string) need {
	where := "the namespace of every cluster"
	if namespace != "" {
		where = "namespace " + namespace
	}
	right := authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: "bind", Group: rbacv1.GroupName, Resource: strings.ToLower(kind) + "s", Name: name,
	}
	return need{right, fmt.Sprintf("bind %s %s in %s", kind, name, where)}
}

func signerNeed(signer, verb string) need {
	return need{authorizationv1.ResourceAttributes{Verb: verb, Group: certificatesv1.GroupName, Resource: "signers", Name: signer},
		fmt.Sprintf("%s certificates of signer %s", verb, signer)}
}
