// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var (
	leaseResource    = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
	clusterRoleBinds = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
)

const agentSpace = "open-cluster-management-agent"

// TestAClusterIsAdopted takes a cluster over from the operator and the agents of another
// distribution: the identity of the agent, the records of works and their objects stay.
func TestAClusterIsAdopted(t *testing.T) {
	t.Parallel()
	hub := harness.FreshWithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")})
	spoke := harness.FreshWithNode(t, "spoke", map[string]string{"ocm-agent": harness.Program(t, "controllers/ocm-agent")})
	kubeconfig(t, hub, spoke)
	require.Zero(t, run(t, "hub", "init", "--context", "hub", "--timeout", "5m").code)
	join := []string{"join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--timeout", "5m"}
	require.Zero(t, run(t, append(join, "--accept")...).code)
	greet := func(text string) {
		body := strings.ReplaceAll(configMap, "hello", text)
		require.Zero(t, runWith(t, body, "work", "apply", "web", "-f", "-", "-c", "cluster1", "--context", "hub", "--wait", "--timeout", "5m").code)
	}
	greet("hello")
	handOver(t, hub, spoke)
	objects, records, asked := running(t, spoke), uids(t, spoke, workRecord), uids(t, hub, requests)
	require.Len(t, objects, 1)
	require.Len(t, records, 1)

	refused := run(t, join...)
	require.Equal(t, 6, refused.code)
	require.Contains(t, refused.err, "has the agent of another distribution")
	require.Contains(t, refused.err, "deployment open-cluster-management/klusterlet runs quay.io/open-cluster-management/registration-operator:v1.3.1")
	require.Contains(t, refused.err, "--adopt")
	refusals(t, spoke, append(join, "--adopt"))
	look, move, back := guideLines(t)
	plan := typeLine(t, look)
	for _, row := range []string{
		`stopped +deployment.apps/klusterlet `, `removed +deployment.apps/klusterlet-work-agent`, `added +deployment.apps/klusterlet-agent`,
		`removed +clusterrolebinding.*klusterlet-work:execution-admin`, `kept +klusterlet.operator`, `kept +secret/hub-kubeconfig-secret`,
		`kept +appliedm.*1 object`,
	} {
		require.Regexp(t, row, plan)
	}
	operator := spoke.Dynamic(t).Resource(deployments).Namespace("open-cluster-management")
	wanted := func() int64 {
		d, err := operator.Get(t.Context(), "klusterlet", metav1.GetOptions{})
		require.NoError(t, err)
		n, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
		return n
	}
	require.EqualValues(t, 1, wanted(), "a plan stops nothing")

	leases := watchRenewals(t, hub, "cluster1")
	require.Contains(t, typeLine(t, move), "joined hub hub (configured)")
	require.Zero(t, wanted())
	agents, err := spoke.Dynamic(t).Resource(deployments).Namespace(agentSpace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, agents.Items, 1, "the other agents are gone")
	_, err = spoke.Dynamic(t).Resource(clusterRoleBinds).Get(t.Context(), "open-cluster-management:klusterlet-work:execution-admin", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "rights of the other agent are left: %v", err)
	identity, err := spoke.Dynamic(t).Resource(secrets).Namespace(agentSpace).Get(t.Context(), "hub-kubeconfig-secret", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte("abc12")), identity.Object["data"].(map[string]any)["agent-name"])
	require.Equal(t, asked, uids(t, hub, requests), "it asks for no other certificate")
	require.Equal(t, objects, running(t, spoke))
	require.Equal(t, records, uids(t, spoke, workRecord))
	greet("from our agent")
	leases.noneMissed(t, true)
	well(t, "spoke", "--context", "spoke", "--hub-context", "hub")
	require.Contains(t, run(t, append(join, "--adopt")...).out, "unchanged")

	way := typeLine(t, back[0])
	for _, row := range []string{
		`removed +deployment.apps/klusterlet-agent`, `removed +clusterrolebinding.*kubectl-ocm:klusterlet-work:agent`,
		`restored +deployment.apps/klusterlet `, `kept +klusterlet.operator`, `kept +secret/hub-kubeconfig-secret`,
	} {
		require.Regexp(t, row, way)
	}
	require.Zero(t, wanted(), "a plan starts nothing")
	require.Contains(t, typeLine(t, back[1]+" --wait=false"), "run by quay.io/open-cluster-management/registration-operator:v1.3.1 again")
	require.Equal(t, 6, run(t, "join", "--back-out", "--context", "spoke").code, "it is back")
	require.EqualValues(t, 1, wanted())
	require.Equal(t, objects, running(t, spoke))
	require.Equal(t, records, uids(t, spoke, workRecord))
	for name := range uids(t, spoke, clusterRoleBinds) {
		require.NotContains(t, name, "kubectl-ocm")
	}
}

// refusals plants what cannot be adopted, one after the other, and checks that join says so.
func refusals(t *testing.T, spoke *harness.Cluster, join []string) {
	t.Helper()
	refused := func(cause string) {
		t.Helper()
		got := run(t, join...)
		require.Equal(t, 6, got.code)
		require.Contains(t, got.err, cause)
	}
	patched(t, spoke, deployments, "open-cluster-management", "klusterlet", `{"metadata":{"labels":{"olm.owner":"klusterlet.v1.3.1"}}}`)
	refused("the Operator Lifecycle Manager would start it again")
	patched(t, spoke, deployments, "open-cluster-management", "klusterlet", `{"metadata":{"labels":{"olm.owner":null}}}`)
	patched(t, spoke, klusterlets, "", "klusterlet", `{"spec":{"deployOption":{"mode":"Hosted"}}}`)
	refused("klusterlet/klusterlet is hosted on another cluster")
	patched(t, spoke, klusterlets, "", "klusterlet", `{"spec":{"deployOption":{"mode":"Default"}}}`)
	other := object("operator.open-cluster-management.io/v1", "Klusterlet", "", "edge", nil)
	client := spoke.Dynamic(t).Resource(klusterlets)
	_, err := client.Create(t.Context(), other, metav1.CreateOptions{})
	require.NoError(t, err)
	refused("klusterlet/edge would be left without an agent")
	require.NoError(t, client.Delete(t.Context(), "edge", metav1.DeleteOptions{}))
}

// guideLines returns the commands of the guide: to look, to move a cluster, and the way back.
func guideLines(t *testing.T) (look, move string, back []string) {
	t.Helper()
	lines := slices.DeleteFunc(commandsOf(t), func(line string) bool { return strings.HasPrefix(line, "kubectl ocm hub ") })
	require.Len(t, lines, 4)
	return lines[0], lines[1], lines[2:]
}

// uids returns the UIDs of all objects of a kind by name.
func uids(t *testing.T, c *harness.Cluster, kind schema.GroupVersionResource) map[string]string {
	t.Helper()
	list, err := c.Dynamic(t).Resource(kind).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	out := map[string]string{}
	for _, u := range list.Items {
		out[u.GetName()] = string(u.GetUID())
	}
	return out
}

// handOver makes the installation of a joined cluster look like one of OCM 1.3 in mode Default:
// its operator, its two agents, which have a name of five characters, and their rights.
func handOver(t *testing.T, hub, spoke *harness.Cluster) {
	t.Helper()
	client := spoke.Dynamic(t)
	foreground := metav1.DeletePropagationForeground
	ours := client.Resource(deployments).Namespace(agentSpace)
	require.NoError(t, ours.Delete(t.Context(), "klusterlet-agent", metav1.DeleteOptions{PropagationPolicy: &foreground}))
	eventually(t, func() bool {
		_, err := ours.Get(t.Context(), "klusterlet-agent", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, patience, 100*time.Millisecond)
	for name := range uids(t, spoke, clusterRoleBinds) {
		if strings.HasPrefix(name, "kubectl-ocm:") {
			require.NoError(t, client.Resource(clusterRoleBinds).Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
	}
	k, err := client.Resource(klusterlets).Get(t.Context(), "klusterlet", metav1.GetOptions{})
	require.NoError(t, err)
	unstructured.RemoveNestedField(k.Object, "status", "conditions")
	_, err = client.Resource(klusterlets).UpdateStatus(t.Context(), k, metav1.UpdateOptions{})
	require.NoError(t, err)

	certificate, key := issue(t, hub, "system:open-cluster-management:cluster1:abc12",
		"system:open-cluster-management:cluster1", "system:open-cluster-management:managed-clusters")
	patched(t, spoke, secrets, agentSpace, "hub-kubeconfig-secret", `{"data":{"agent-name":"`+base64.StdEncoding.EncodeToString([]byte("abc12"))+
		`","tls.crt":"`+base64.StdEncoding.EncodeToString(certificate)+`","tls.key":"`+base64.StdEncoding.EncodeToString(key)+`"}}`)

	for _, u := range []*unstructured.Unstructured{
		object("v1", "Namespace", "", "open-cluster-management", nil),
		deploymentOf("open-cluster-management", "klusterlet", "quay.io/open-cluster-management/registration-operator:v1.3.1"),
		deploymentOf(agentSpace, "klusterlet-registration-agent", "quay.io/open-cluster-management/registration:v1.3.1"),
		deploymentOf(agentSpace, "klusterlet-work-agent", "quay.io/open-cluster-management/work:v1.3.1"),
		object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "open-cluster-management:klusterlet-work:execution-admin", map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "namespace": agentSpace, "name": "klusterlet-work-sa"}},
		}),
	} {
		_, err := client.Resource(resourceOf(u)).Namespace(u.GetNamespace()).Create(t.Context(), u, metav1.CreateOptions{FieldManager: "operator"})
		require.NoError(t, err)
	}
	// An agent in one process, which crashed, has left its lock.
	patched(t, spoke, leaseResource, agentSpace, "klusterlet-agent-lock", `{"spec":{"holderIdentity":"another","leaseDurationSeconds":137,
		"renewTime":"`+time.Now().UTC().Format(metav1.RFC3339Micro)+`"}}`)
}

func resourceOf(u *unstructured.Unstructured) schema.GroupVersionResource {
	return map[string]schema.GroupVersionResource{"Namespace": namespaces, "Deployment": deployments, "ClusterRoleBinding": clusterRoleBinds}[u.GetKind()]
}

func deploymentOf(namespace, name, image string) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	return object("apps/v1", "Deployment", namespace, name, map[string]any{"spec": map[string]any{
		"replicas": int64(1), "selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": name, "image": image}},
		}},
	}})
}

// issue returns a certificate of the hub for an agent, and its key.
func issue(t *testing.T, hub *harness.Cluster, name string, groups ...string) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: groups}}, private)
	require.NoError(t, err)
	client := hub.Dynamic(t).Resource(requests)
	csr := object("certificates.k8s.io/v1", "CertificateSigningRequest", "", "of-the-other-agent", map[string]any{"spec": map[string]any{
		"signerName": "kubernetes.io/kube-apiserver-client", "usages": []any{"digital signature", "client auth"},
		"request": base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})),
	}})
	_, err = client.Create(t.Context(), csr, metav1.CreateOptions{})
	require.NoError(t, err)
	approval := []byte(`{"status":{"conditions":[{"type":"Approved","status":"True","reason":"Test","message":"by the test"}]}}`)
	_, err = client.Patch(t.Context(), csr.GetName(), types.MergePatchType, approval, metav1.PatchOptions{}, "approval")
	require.NoError(t, err)
	eventually(t, func() bool {
		live, err := client.Get(t.Context(), csr.GetName(), metav1.GetOptions{})
		if err != nil {
			return false
		}
		text, _, _ := unstructured.NestedString(live.Object, "status", "certificate")
		certificate, err = base64.StdEncoding.DecodeString(text)
		return err == nil && len(certificate) > 0
	}, patience, 100*time.Millisecond)
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}
