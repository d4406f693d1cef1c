// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// published compares the address and CA in cluster-info, with which clusters join that know no
// other, with the certificate that the server there shows.
func (h *hubCheck) published(ctx context.Context) ([]Finding, error) {
	info, err := trust.Published(ctx, h.o.Hub)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		return nil, nil // nothing is published, or it is not for this user
	case err != nil:
		return []Finding{failure(CodeHubPublished, "what the hub publishes cannot be read", fleet.OneLine(err.Error()), PublishAnew.On(h.o.Hub))}, nil
	}
	return h.judgePublished(ctx, trust.Endpoint{Server: info.Server, CA: info.CA}), nil
}

func (h *hubCheck) judgePublished(ctx context.Context, at trust.Endpoint) []Finding {
	refused := refusal(ctx, at)
	own := at
	own.Server = h.o.Hub.Server()
	_, err := trust.Root(ctx, own, "")
	fits := err == nil
	if refused == nil {
		// It is trusted, or meant for the clusters only. The CA can still be compared here.
		if refused = refusal(ctx, own); refused == nil {
			return nil // the check of the API server reports one that does not answer
		}
		at = own
	}
	switch name := (x509.HostnameError{}); {
	case errors.As(refused, &name) && issued(refused, at.CA):
		return []Finding{failure(CodeHubPublished, "the certificate of "+at.Server+" is not for that address", fleet.OneLine(name.Error()),
			PublishAddress.On(h.o.Hub))}
	case fits:
		return []Finding{warning(CodeHubPublished, "from this machine another server answers at "+at.Server,
			"its certificate is of "+refused.UnverifiedCertificates[0].Issuer.String()+", not of the CA of the hub",
			fleet.Advice("have proxies that replace certificates let it pass; an agent that meets the same server does not join"))}
	}
	return []Finding{failure(CodeHubPublished, "the CA that the hub publishes did not issue the certificate of "+at.Server, fleet.OneLine(refused.Err.Error()),
		PublishAnew.On(h.o.Hub))}
}

// refusal returns why the certificate of a server is not trusted; nil if it is, or nobody answers.
func refusal(ctx context.Context, at trust.Endpoint) *tls.CertificateVerificationError {
	var refused *tls.CertificateVerificationError
	if _, err := trust.Root(ctx, at, ""); errors.As(err, &refused) && len(refused.UnverifiedCertificates) > 0 {
		return refused
	}
	return nil
}

// issued reports whether a refused certificate is of the CA, whatever names it has.
func issued(refused *tls.CertificateVerificationError, ca []byte) bool {
	o := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool()}
	o.Roots.AppendCertsFromPEM(ca)
	for _, c := range refused.UnverifiedCertificates[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := refused.UnverifiedCertificates[0].Verify(o)
	return err == nil
}

// tokens reports join tokens that a cluster waits for in vain, and those that are valid for ever.
// Who may not read them gets no finding.
func (h *hubCheck) tokens(ctx context.Context) ([]Finding, error) {
	tokens, err := request.Tokens(ctx, h.o.Hub, h.run.Now())
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Finding
	for i := range tokens {
		f, err := h.token(ctx, &tokens[i])
		if err != nil {
			return out, err
		}
		if f.Code != "" {
			out = append(out, f)
		}
	}
	secrets, err := fleet.ListAll(ctx, h.o.Hub, fleet.Query{Resource: fleet.Secrets, Namespace: operatorv1.NamespaceOperator,
		Fields: "type=" + string(corev1.SecretTypeServiceAccountToken)})
	if err != nil {
		return out, fleet.Explain("listing tokens", h.o.Hub, err)
	}
	for i := range secrets {
		s := &secrets[i]
		if s.GetAnnotations()[corev1.ServiceAccountNameKey] == clusterv1.BootstrapServiceAccount {
			out = append(out, warning(CodeHubTokens, "secret "+s.GetNamespace()+"/"+s.GetName()+" holds a join token that never expires",
				"with it any number of clusters may ask to join, for ever", DropToken.On(h.o.Hub, "namespace", s.GetNamespace(), "secret", s.GetName())))
		}
	}
	return out, nil
}

// token returns what is wrong with one join token; a zero finding for nothing.
func (h *hubCheck) token(ctx context.Context, t *request.Token) (Finding, error) {
	switch {
	case t.Expires.IsZero():
		return warning(CodeHubTokens, "join token "+t.ID+" never expires", "its secret has no expiration that can be read",
			RevokeToken.On(h.o.Hub, "token", t.ID)), nil
	case t.Limit < 0:
		return failure(CodeHubTokens, "no cluster may join with join token "+t.ID, "its number of uses cannot be read",
			RevokeToken.On(h.o.Hub, "token", t.ID)), nil
	case !t.Expired || t.Cluster == "":
		return Finding{}, nil
	}
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, h.o.Hub.Client, fleet.ManagedClusters, "", t.Cluster)
	if err != nil && !apierrors.IsNotFound(err) {
		return Finding{}, fleet.Explain("reading managedcluster "+t.Cluster, h.o.Hub, err)
	}
	if mc != nil {
		return Finding{}, nil // it has asked; what it waits for now is reported there
	}
	return warning(CodeHubTokens, "the join token of cluster "+t.Cluster+" expired "+duration.HumanDuration(h.run.Now().Sub(t.Expires.Time))+" ago",
		"no cluster of that name has asked to join", TokenFor.On(h.o.Hub, "cluster", t.Cluster)), nil
}

// approver is one user name of the list whose clusters are accepted automatically, and where it is
// in the ClusterManager, as a JSON pointer.
type approver struct{ user, path string }

// gateAutoApproval switches automatic acceptance.
const gateAutoApproval = "ManagedClusterAutoApproval"

// approversOf returns the users that the hub goes by, and those of the older field that it ignores
// because the driver csr has some.
func approversOf(cm *operatorv1.ClusterManager) (counted, ignored []approver, on bool) {
	const at = "/spec/registrationConfiguration"
	c := cm.Spec.RegistrationConfiguration
	if c == nil {
		return nil, nil, false
	}
	for i, user := range c.AutoApproveUsers {
		counted = append(counted, approver{user, fmt.Sprintf("%s/autoApproveUsers/%d", at, i)})
	}
	for i, driver := range c.RegistrationDrivers {
		if driver.CSR == nil || len(driver.CSR.AutoApprovedIdentities) == 0 || (driver.AuthType != operatorv1.AuthTypeCSR && driver.AuthType != "") {
			continue
		}
		counted, ignored = nil, counted
		for j, user := range driver.CSR.AutoApprovedIdentities {
			counted = append(counted, approver{user, fmt.Sprintf("%s/registrationDrivers/%d/csr/autoApprovedIdentities/%d", at, i, j)})
		}
		break
	}
	i := slices.IndexFunc(c.FeatureGates, func(g operatorv1.FeatureGate) bool { return g.Feature == gateAutoApproval })
	return counted, ignored, i >= 0 && c.FeatureGates[i].Mode == operatorv1.FeatureGateModeTypeEnable
}

// approvers reports users of automatic acceptance that no request can come from, and those that
// everyone is.
func (h *hubCheck) approvers(ctx context.Context) ([]Finding, error) {
	cm, err := typed.Get[operatorv1.ClusterManager](ctx, h.o.Hub.Client, fleet.ClusterManagers, "", operatorv1.DefaultClusterManagerName)
	if err != nil {
		return nil, nil //nolint:nilerr // the check of the ClusterManager reports it
	}
	counted, ignored, on := approversOf(cm)
	switch {
	case len(counted) > 0 && !on:
		return []Finding{warning(CodeHubApprovers, fleet.Many(len(counted), "user")+" of automatic acceptance have no effect", "the feature gate "+
			gateAutoApproval+" is off", work.OpenGate.On(h.o.Hub, "gate", gateAutoApproval))}, nil
	case len(counted) == 0 && on:
		return []Finding{warning(CodeHubApprovers, "no cluster is accepted automatically", "the feature gate "+gateAutoApproval+
			" is on, and no user is named", NameApprover.On(h.o.Hub))}, nil
	}
	var out []Finding
	drop := func(one approver) fleet.Fix {
		value, _ := json.Marshal(one.user) // a text always has a form in JSON
		patch := fmt.Sprintf(`[{"op":"test","path":%q,"value":%s},{"op":"remove","path":%q}]`, one.path, value, one.path)
		return DropApprover.On(h.o.Hub, "name", cm.Name, "patch", patch)
	}
	for _, one := range ignored {
		out = append(out, warning(CodeHubApprovers, fmt.Sprintf("user %q of automatic acceptance has no effect", one.user),
			"autoApproveUsers is ignored where the driver csr has autoApprovedIdentities", drop(one)))
	}
	for _, one := range counted {
		why, grave, err := h.approver(ctx, one.user)
		if err != nil {
			return out, err
		}
		f := warning(CodeHubApprovers, fmt.Sprintf("user %q of automatic acceptance has no effect", one.user), why, drop(one))
		if grave {
			f.Severity, f.Title = SeverityError, fmt.Sprintf("user %q of automatic acceptance is everyone", one.user)
		}
		if why != "" {
			out = append(out, f)
		}
	}
	return out, nil
}

// approver returns why no certificate request can come from a user, or grave, why any can; "" when
// nothing is known against it. User names are compared exactly.
func (h *hubCheck) approver(ctx context.Context, user string) (why string, grave bool, err error) {
	account, isAccount := strings.CutPrefix(user, "system:serviceaccount:")
	id, isToken := strings.CutPrefix(user, "system:bootstrap:")
	switch {
	case user == "system:anonymous":
		return "whoever reaches the API server, without any login, is this user", true, nil
	case user == "" || strings.TrimSpace(user) != user:
		return "no user name is empty, or begins or ends with a space", false, nil
	case strings.ContainsAny(user, "*?"):
		return "names are compared exactly, and are no patterns", false, nil
	case isGroup(user):
		return "it is a group, and users are compared", false, nil
	case isToken:
		why, err = h.absent(ctx, fleet.Secrets, metav1.NamespaceSystem, "bootstrap-token-"+id)
	case isAccount:
		namespace, name, _ := strings.Cut(account, ":")
		if namespace == "" || name == "" {
			return "the user of a ServiceAccount is system:serviceaccount:NAMESPACE:NAME", false, nil
		}
		why, err = h.absent(ctx, fleet.ServiceAccounts, namespace, name)
	}
	return why, false, err
}

// isGroup reports whether a name is that of a group of Kubernetes.
func isGroup(name string) bool {
	return slices.Contains([]string{"system:masters", "system:authenticated", "system:unauthenticated", "system:bootstrappers"}, name) ||
		strings.HasPrefix(name, "system:bootstrappers:") || strings.HasPrefix(name, "system:serviceaccounts")
}

// absent says that an object does not exist; "" for one that does, or that the caller may not read.
func (h *hubCheck) absent(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) (string, error) {
	_, err := h.o.Hub.Client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "there is no " + strings.TrimSuffix(resource.Resource, "s") + " " + namespace + "/" + name, nil
	case err != nil && !apierrors.IsForbidden(err):
		return "", fleet.Explain("reading "+resource.Resource+" of "+namespace, h.o.Hub, err)
	}
	return "", nil
}
