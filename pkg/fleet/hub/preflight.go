// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// preflight checks the cluster and only reads.
func (o *InitOptions) preflight(ctx context.Context, r *fleet.Run) error {
	r.Step("preflight")
	v, err := fleet.ServerVersion(ctx, o.Hub)
	if err != nil {
		return err
	}
	if err := fleet.AtLeast(o.Hub, v, fleet.OldestHub, "hub"); err != nil {
		return err
	}
	checks := []func(context.Context) error{
		func(ctx context.Context) error { return CheckSigning(ctx, o.Hub, v) },
		func(ctx context.Context) error { return CheckNamespaces(ctx, o.Hub) },
		o.checkOther,
	}
	for _, check := range checks {
		if err := check(ctx); err != nil {
			return err
		}
	}
	warning := o.firstWarning(ctx, r)
	detail := fmt.Sprintf("Kubernetes %s, %d checks", v, len(checks)+2)
	if warning.Text != "" {
		r.Warn(detail+", 1 warning: "+warning.Text, warning.Fix)
		return nil
	}
	r.Done(detail)
	return nil
}

// CheckSigning refuses a cluster on which nothing can sign client certificates.
func CheckSigning(ctx context.Context, c *fleet.Cluster, version string) error {
	_, err := c.Get(ctx, "/apis/certificates.k8s.io/v1")
	if apierrors.IsNotFound(err) || strings.Contains(version, "-eks-") {
		return fleet.Refuse(c.String()+" cannot be a hub", "it does not sign client certificates (signer kubernetes.io/kube-apiserver-client)",
			fleet.Advice("use a cluster whose kube-controller-manager signs certificates"))
	}
	if err != nil {
		return fleet.Explain("looking for certificate signing", c, err)
	}
	return nil
}

// CheckNamespaces refuses to install into a namespace that is being deleted.
func CheckNamespaces(ctx context.Context, c *fleet.Cluster) error {
	for _, name := range []string{operatorv1.NamespaceOperator, operatorv1.NamespaceHub} {
		ns, err := c.Client.Resource(fleet.Namespaces).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fleet.Explain("reading namespace "+name, c, err)
		}
		if ns.GetDeletionTimestamp() != nil {
			return fleet.Refuse("namespace "+name+" is being deleted", "an earlier hub is not gone yet", fleet.AwaitNamespace.On(c, "namespace", name))
		}
	}
	return nil
}

func (o *InitOptions) checkOther(ctx context.Context) error {
	if err := refuseHosted(ctx, o.Hub); err != nil {
		return err
	}
	if o.TakeOver != nil {
		return nil
	}
	return CheckOther(ctx, o.Hub)
}

// CheckOther refuses a hub that another operator runs.
func CheckOther(ctx context.Context, c *fleet.Cluster) error {
	d, err := Deployment(ctx, c)
	if err != nil {
		return err
	}
	if OthersHub(d) {
		return fleet.Refuse(c.String()+" is a hub already, run by another operator", "deployment "+d.Namespace+"/"+d.Name+" runs "+ImageOf(d),
			Adopt.On(c))
	}
	split, err := fleet.ListAll(ctx, c, fleet.Query{Resource: fleet.Deployments, Namespace: operatorv1.NamespaceHub})
	if err != nil {
		return fleet.Explain("looking for other hub components", c, err)
	}
	for i := range split {
		if !teardown.IsHubComponent(&split[i]) {
			return fleet.Refuse(c.String()+" is a hub already, of another distribution", "there are deployments in "+operatorv1.NamespaceHub+", such as "+
				split[i].GetName(),
				CleanFirst.On(c))
		}
	}
	return nil
}

// ControllerLease is renewed by the process that signs certificates, deletes namespaces and
// collects garbage.
const ControllerLease = "kube-controller-manager"

// firstWarning returns the first thing that may be a problem.
func (o *InitOptions) firstWarning(ctx context.Context, r *fleet.Run) fleet.Note {
	if o.APIServerURL == "" && trust.IsLoopback(o.Hub.Server()) {
		return fleet.Note{Text: o.Hub.Server() + " is only valid on this machine", Fix: ReachableHub.With()}
	}
	if away, err := SignerAway(ctx, r, o.Hub); err == nil && away > 0 {
		return fleet.Note{Text: "kube-controller-manager has not been alive for " + away.String() + ": it signs the certificates"}
	}
	return fleet.Note{}
}

// SignerAway returns how long the process that signs certificates has been away; zero while it
// runs. The error means that this is unknown.
func SignerAway(ctx context.Context, r *fleet.Run, c *fleet.Cluster) (time.Duration, error) {
	lease, err := c.Client.Resource(fleet.Leases).Namespace(metav1.NamespaceSystem).Get(ctx, ControllerLease, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	text, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, err
	}
	if away := r.Now().Sub(at); away > time.Minute {
		return away.Round(time.Second), nil
	}
	return 0, nil
}

// clusterInfoRole lets everyone read cluster-info, as kubeadm does.
const clusterInfoRole = "open-cluster-management:cluster-info"

// clusterInfo returns the ConfigMap that publishes the hub's address and CA, and the right to
// read it. One that another program maintains is left alone.
func (o *InitOptions) clusterInfo(ctx context.Context) ([]*unstructured.Unstructured, error) {
	info := labelled(fleet.Named(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, trust.ClusterInfoNamespace, trust.ClusterInfoName))
	live, err := write.Live(ctx, o.Hub, info)
	if err != nil {
		return nil, fleet.Explain("reading "+fleet.Describe(info), o.Hub, err)
	}
	if live != nil && live.GetLabels()[operatorv1.LabelCreatedByClusterManager] == "" {
		return nil, nil
	}
	if live != nil && o.APIServerURL == "" {
		if old, err := trust.ParseInfo(live, ""); err == nil {
			o.APIServerURL = old.Server
		}
	}
	ca, err := trust.CAOf(o.Hub.Config)
	if err != nil {
		ca, err = trust.PublishedCA(ctx, o.Hub)
	}
	if err != nil {
		// There is nothing to publish that others can trust; the hub works without it.
		ca = nil
	}
	if len(ca) == 0 {
		return nil, nil
	}
	server := o.APIServerURL
	if server == "" {
		server = o.Hub.Server()
	}
	kc := clientcmdapi.NewConfig()
	kc.Clusters[""] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	text, err := clientcmd.Write(*kc)
	if err != nil {
		return nil, fmt.Errorf("writing cluster-info: %w", err)
	}
	info.Object["data"] = map[string]any{"kubeconfig": string(text)}
	return append(infoRights(), info), nil
}

// PublishedObjects names what Init publishes where the hub does not do that itself yet.
func PublishedObjects() []*unstructured.Unstructured {
	return append(infoRights(), labelled(
		fleet.Named(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, trust.ClusterInfoNamespace, trust.ClusterInfoName)))
}

func infoRights() []*unstructured.Unstructured {
	group := fleet.ClusterRoles.Group
	role := labelled(fleet.Named(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Role"}, trust.ClusterInfoNamespace, clusterInfoRole))
	role.Object["rules"] = []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"},
		"resourceNames": []any{trust.ClusterInfoName}, "verbs": []any{"get"}}}
	binding := labelled(fleet.Named(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "RoleBinding"}, trust.ClusterInfoNamespace, clusterInfoRole))
	binding.Object["roleRef"] = map[string]any{"apiGroup": group, "kind": "Role", "name": clusterInfoRole}
	binding.Object["subjects"] = []any{map[string]any{"apiGroup": group, "kind": "User", "name": "system:anonymous"}}
	return []*unstructured.Unstructured{role, binding}
}

// labelled marks an object as part of the hub, for Clean to find.
func labelled(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetLabels(map[string]string{operatorv1.LabelCreatedByClusterManager: operatorv1.DefaultClusterManagerName})
	return u
}
