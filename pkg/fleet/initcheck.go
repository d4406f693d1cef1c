// SPDX-License-Identifier: Apache-2.0

package fleet

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
)

// preflight judges the cluster by reads alone.
func (o *InitOptions) preflight(ctx context.Context, r *run) error {
	r.step("preflight")
	v, err := serverVersion(ctx, o.Hub)
	if err != nil {
		return err
	}
	if err := atLeast(o.Hub, v, oldestHub, "hub"); err != nil {
		return err
	}
	checks := []func(context.Context) error{
		func(ctx context.Context) error { return o.checkSigning(ctx, v) },
		o.checkNamespaces,
		o.checkOther,
	}
	for _, check := range checks {
		if err := check(ctx); err != nil {
			return err
		}
	}
	warning := o.warning(ctx, r)
	detail := fmt.Sprintf("Kubernetes %s, %d checks", v, len(checks)+2)
	if warning != "" {
		r.warn(detail + ", 1 warning: " + warning)
		return nil
	}
	r.done(detail)
	return nil
}

// checkSigning refuses a cluster on which nobody can sign client certificates.
func (o *InitOptions) checkSigning(ctx context.Context, version string) error {
	_, err := o.Hub.get(ctx, "/apis/certificates.k8s.io/v1")
	if apierrors.IsNotFound(err) || strings.Contains(version, "-eks-") {
		return refused(o.Hub.String()+" cannot be a hub", "it does not sign client certificates (signer kubernetes.io/kube-apiserver-client)",
			"use a cluster whose kube-controller-manager signs certificates")
	}
	if err != nil {
		return explain("looking for certificate signing", o.Hub, err)
	}
	return nil
}

// checkNamespaces refuses to install into a namespace that is going away.
func (o *InitOptions) checkNamespaces(ctx context.Context) error {
	for _, name := range []string{operatorv1.NamespaceOperator, operatorv1.NamespaceHub} {
		ns, err := o.Hub.Client.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return explain("reading namespace "+name, o.Hub, err)
		}
		if ns.GetDeletionTimestamp() != nil {
			return refused("namespace "+name+" is being deleted", "an earlier hub is not gone yet", "wait for: kubectl wait --for=delete namespace/"+name+o.Hub.flag())
		}
	}
	return nil
}

// checkOther refuses a hub that another operator runs.
func (o *InitOptions) checkOther(ctx context.Context) error {
	d, err := hubDeployment(ctx, o.Hub)
	if err != nil {
		return err
	}
	if othersHub(d) {
		return refused(o.Hub.String()+" is a hub already, run by another operator", "deployment "+d.Namespace+"/"+d.Name+" runs "+imageOf(d),
			"use it as it is (kubectl ocm hub status"+o.Hub.flag()+"), or remove it with the tool that installed it")
	}
	split, err := listAll(ctx, o.Hub, query{resource: deployments, namespace: operatorv1.NamespaceHub})
	if err != nil {
		return explain("looking for other hub components", o.Hub, err)
	}
	if len(split) > 0 {
		return refused(o.Hub.String()+" is a hub already, in the split layout", "there are deployments in "+operatorv1.NamespaceHub+", such as "+split[0].GetName(),
			"keep it as it is, or remove it first: kubectl ocm hub clean"+o.Hub.flag())
	}
	return nil
}

// controllerLease is renewed by the process that signs certificates, deletes
// namespaces and collects garbage.
const controllerLease = "kube-controller-manager"

// warning tells the first thing that may not be as wanted.
func (o *InitOptions) warning(ctx context.Context, r *run) string {
	if o.APIServerURL == "" && isLoopback(o.Hub.Server()) {
		return o.Hub.Server() + " means this machine only; clusters elsewhere need --apiserver-url https://<reachable>"
	}
	if away, err := signerAway(ctx, r, o.Hub); err == nil && away > 0 {
		return "kube-controller-manager has not been alive for " + away.String() + ": it signs the certificates"
	}
	return ""
}

// signerAway is how long the process that signs certificates has been away, zero
// while it is there. The error says that this cannot be told.
func signerAway(ctx context.Context, r *run, c *Cluster) (time.Duration, error) {
	lease, err := c.Client.Resource(leases).Namespace(metav1.NamespaceSystem).Get(ctx, controllerLease, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	text, _, _ := unstructured.NestedString(lease.Object, "spec", "renewTime")
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return 0, err
	}
	if away := r.now().Sub(at); away > time.Minute {
		return away.Round(time.Second), nil
	}
	return 0, nil
}

// clusterInfoRole lets everybody read cluster-info, as kubeadm does.
const clusterInfoRole = "open-cluster-management:cluster-info"

// clusterInfo returns the ConfigMap that tells everybody the hub's address and
// CA, and the right to read it. One that somebody else keeps is left alone.
func (o *InitOptions) clusterInfo(ctx context.Context, r *run) ([]*unstructured.Unstructured, error) {
	info := labelled(named(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, clusterInfoNamespace, clusterInfoName))
	live, err := r.live(ctx, o.Hub, info)
	if err != nil {
		return nil, explain("reading "+describe(info), o.Hub, err)
	}
	if live != nil && live.GetLabels()[operatorv1.LabelCreatedByClusterManager] == "" {
		return nil, nil
	}
	if live != nil && o.APIServerURL == "" {
		if old, err := parseInfo(live, ""); err == nil {
			o.APIServerURL = old.server
		}
	}
	ca, err := caOf(o.Hub.Config)
	if err != nil {
		ca, err = publishedCA(ctx, o.Hub)
	}
	if err != nil {
		// Nothing could be published that others can trust; the hub works without.
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

func infoRights() []*unstructured.Unstructured {
	group := clusterRoles.Group
	role := labelled(named(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Role"}, clusterInfoNamespace, clusterInfoRole))
	role.Object["rules"] = []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"},
		"resourceNames": []any{clusterInfoName}, "verbs": []any{"get"}}}
	binding := labelled(named(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "RoleBinding"}, clusterInfoNamespace, clusterInfoRole))
	binding.Object["roleRef"] = map[string]any{"apiGroup": group, "kind": "Role", "name": clusterInfoRole}
	binding.Object["subjects"] = []any{map[string]any{"apiGroup": group, "kind": "User", "name": "system:anonymous"}}
	return []*unstructured.Unstructured{role, binding}
}

// labelled marks an object as part of the hub, by which clean finds it.
func labelled(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetLabels(map[string]string{operatorv1.LabelCreatedByClusterManager: operatorv1.DefaultClusterManagerName})
	return u
}
