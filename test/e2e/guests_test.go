// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent/operator"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
	"github.com/kubectl-ocm/kubectl-ocm/tools/image/oci"
)

// guest is a further Klusterlet of c1, which the operator serves there.
type guest struct {
	// name is that of the Klusterlet, and the cluster joins under it.
	name, mode string
	// manages is the cluster that the agent manages.
	manages string
	// deployments are the names that follow that of the Klusterlet.
	deployments []string
}

// guests are of every mode that the plugin does not install.
var guests = []guest{
	{"edge1", "Hosted", "c2", []string{"registration-agent", "work-agent"}},
	{"edge2", "SingletonHosted", "c2", []string{"agent"}},
	{"again", "Default", "c1", []string{"registration-agent", "work-agent"}},
}

func (g guest) isHosted() bool { return strings.HasSuffix(g.mode, "Hosted") }

// namespace is where the agent runs on c1.
func (g guest) namespace() string {
	if g.isHosted() {
		return g.name
	}
	return "open-cluster-management-" + g.name
}

// operatorFile writes what installs the operator beside the agent of c1, without the definition of
// klusterlets that is there.
func operatorFile(t *testing.T) string {
	t.Helper()
	all, err := operator.Objects(oci.DefaultRepository + "/ocm-agent:" + version(t))
	require.NoError(t, err)
	require.Equal(t, "CustomResourceDefinition", all[0].GetKind())
	return file(t, "operator.yaml", all[1:]...)
}

// host lets c1, whose own agent goes on, run agents of three more Klusterlets: two of them manage
// c2, on which nothing runs.
func (l *life) host(t *testing.T) {
	kubectl(t, l.on("c1"), "apply", "--server-side", "-f", operatorFile(t))
	names := []string{"accept", "--context", "hub"}
	for _, g := range guests {
		kubectl(t, l.on("c1"), "apply", "-f", l.guestFile(t, g))
		names = append(names, g.name)
	}
	eventually(t, func() error {
		asking := l.ocm(t, "accept", "--show", "--context", "hub")
		for _, g := range guests {
			if !strings.Contains(asking, g.name) {
				return fmt.Errorf("%s does not ask to join:\n%s", g.name, asking)
			}
		}
		return nil
	})
	l.ocm(t, names...)
	for _, g := range guests {
		l.awaitAvailable(t, g.name)
		kubectl(t, l.hub, "apply", "-f", work(t, g.name, g.name))
		l.becomes(t, g.name, "manifestwork", g.name, "Applied")
		kubectl(t, l.on(g.manages), "-n", "default", "get", "configmap", g.name)
		for _, name := range g.deployments {
			kubectl(t, l.on("c1"), "-n", g.namespace(), "rollout", "status", "deployment/"+g.name+"-"+name, "--timeout=1m")
		}
	}
	require.Empty(t, processes(t, l.on("c2"), "ocm-agent"), "agents of c2 run on c1 only")
	require.Len(t, processes(t, l.on("c1"), "ocm-agent"), 7, "one agent of the plugin, an operator, and those of the guests")
	for _, one := range processes(t, l.on("c1"), "ocm-agent") {
		t.Logf("measured: one of them holds %s", one.Memory)
	}
	l.awaitAvailable(t, "c1")
}

// guestFile writes the namespace, the Secrets and the Klusterlet of a guest.
func (l *life) guestFile(t *testing.T, g guest) string {
	t.Helper()
	secrets := map[string][]byte{"bootstrap-hub-kubeconfig": bootstrapKubeconfig(t, l.hub)}
	if g.isHosted() {
		access, err := os.ReadFile(l.on(g.manages).Kubeconfig)
		require.NoError(t, err)
		secrets["external-managed-kubeconfig"] = access
	}
	all := []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": g.namespace()}}}}
	for name, content := range secrets {
		all = append(all, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": g.namespace(), "name": name},
			"stringData": map[string]any{"kubeconfig": string(content)},
		}})
	}
	return file(t, g.name+".yaml", append(all, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet", "metadata": map[string]any{"name": g.name},
		"spec": map[string]any{
			"clusterName": g.name, "namespace": "open-cluster-management-" + g.name, "deployOption": map[string]any{"mode": g.mode},
		},
	}})...)
}

// guestsLeave removes them, two by kubectl as their operator allows and the last by the plugin, then
// the operator. Nothing is left on c2; that nothing is on c1 and on the hub is seen when those leave.
func (l *life) guestsLeave(t *testing.T) {
	last, others := guests[0].name, []string{}
	for _, g := range guests {
		kubectl(t, l.hub, "-n", g.name, "delete", "manifestwork", g.name, "--timeout=1m")
		if g.name != last {
			others = append(others, g.name)
		}
	}
	kubectl(t, l.on("c1"), append([]string{"delete", "klusterlet", "--timeout=1m"}, others...)...)
	kubectl(t, l.hub, append([]string{"delete", "managedcluster", "--timeout=1m"}, others...)...)
	l.ocm(t, "unjoin", last, "--klusterlet", last, "--context", "c1", "--hub-context", "hub", "--yes")
	kubectl(t, l.hub, append([]string{"delete", "namespace", last, "--timeout=1m"}, others...)...)
	kubectl(t, l.on("c1"), "delete", "-f", operatorFile(t), "--timeout=1m")
	l.requireAsBefore(t, l.on("c2"))
	l.awaitAvailable(t, "c1")
}

// bootstrapKubeconfig returns a kubeconfig with a join token of a hub.
func bootstrapKubeconfig(t *testing.T, c *nodes.Cluster) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: c.Server, CertificateAuthorityData: c.CA}
	config.AuthInfos["bootstrap"] = &clientcmdapi.AuthInfo{
		Token: kubectl(t, c, "-n", hubNamespace, "create", "token", hub.BootstrapServiceAccount, "--duration=1h"),
	}
	config.Contexts["bootstrap"] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: "bootstrap"}
	config.CurrentContext = "bootstrap"
	out, err := clientcmd.Write(*config)
	require.NoError(t, err)
	return out
}
