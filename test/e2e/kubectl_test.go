// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
)

// TestFirstStepsByKubectlAlone follows the first steps of Open Cluster Management's
// guides with kubectl alone: objects are applied from files, and the commands are those
// of the guides.
func TestFirstStepsByKubectlAlone(t *testing.T) {
	f := startFleet(t, "c1")
	by := &byKubectl{fleet: f, whole: t, static: filepath.Join(t.TempDir(), "hub.yaml")}
	story(t,
		chapter{"the hub's objects are applied", by.applyHub},
		chapter{"the agent's objects are applied", by.applyAgent},
		chapter{"the CSR is approved and the cluster accepted", by.accept},
		chapter{"the cluster moves into a set of the older API", by.set},
		chapter{"a claim of the cluster is on the hub", by.claims},
		chapter{"a ManifestWork runs a pod", by.work},
		chapter{"an add-on is enabled by hand and then by a placement on the clusters of a cloud", by.addOn},
		chapter{"deleting the add-on takes it from all clusters", by.deleteAddOn},
		chapter{"accepting needs the right to", by.accessIsGuarded},
		chapter{"deleting the ManifestWork deletes the pod", by.deleteWork},
		chapter{"deleting the klusterlet removes the agent", by.deleteKlusterlet},
		chapter{"deleting the clustermanager removes the hub", by.deleteClusterManager},
	)
}

// byKubectl is the state of TestFirstStepsByKubectlAlone.
type byKubectl struct {
	*fleet
	// whole is the test that runs all chapters.
	whole *testing.T
	// static is the file with the objects that make a cluster a hub.
	static string
	// requests is what "kubectl get csr -w" prints.
	requests *screen
}

// screen holds what a program prints while it runs.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// String returns the output so far.
func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// watch runs kubectl until the test ends and returns a view of its output.
func watch(t *testing.T, c *nodes.Cluster, arguments ...string) *screen {
	t.Helper()
	s := &screen{}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Follow(ctx, s, arguments...) // it is killed
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return s
}

// file writes objects as YAML to a file that is removed with the test.
func file(t *testing.T, name string, objects ...*unstructured.Unstructured) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	write(t, path, objects...)
	return path
}

func write(t *testing.T, path string, objects ...*unstructured.Unstructured) {
	t.Helper()
	var out bytes.Buffer
	for _, object := range objects {
		body, err := yaml.Marshal(object.Object)
		require.NoError(t, err)
		out.WriteString("---\n")
		out.Write(body)
	}
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
}

func (b *byKubectl) applyHub(t *testing.T) {
	all, err := hub.Objects(hub.Options{Version: version(t)})
	require.NoError(t, err)
	last := len(all) - 1 // the ClusterManager, after its definition
	write(t, b.static, all[:last]...)
	kubectl(t, b.hub, "apply", "--server-side", "-f", b.static)
	kubectl(t, b.hub, "wait", "--for=condition=Established", "crd/"+hub.CRD, "--timeout=180s")
	kubectl(t, b.hub, "apply", "--server-side", "-f", file(t, "clustermanager.yaml", all[last]))
	kubectl(t, b.hub, "-n", hubNamespace, "rollout", "status", hubPods, "--timeout=180s")
	eventually(t, func() error {
		_, err := b.hub.Kubectl(t.Context(), "get", "managedclusterset", "default", "global")
		return err
	})
	kubectl(t, b.hub, "wait", "--for=condition=Applied", "clustermanager/cluster-manager", "--timeout=180s")
}

func (b *byKubectl) applyAgent(t *testing.T) {
	all, err := agent.Objects(agent.Options{
		Image: "ghcr.io/kubectl-ocm/ocm-agent:" + version(t), ClusterName: "c1", BootstrapKubeconfig: bootstrapKubeconfig(t, b.hub),
	})
	require.NoError(t, err)
	b.requests = watch(b.whole, b.hub, "get", "csr", "-w")
	c, last := b.managed[0], len(all)-1
	kubectl(t, c, "apply", "--server-side", "-f", file(t, "agent.yaml", all[:last]...))
	kubectl(t, c, "wait", "--for=condition=Established", "crd/klusterlets.operator.open-cluster-management.io", "--timeout=180s")
	kubectl(t, c, "apply", "--server-side", "-f", file(t, "klusterlet.yaml", all[last]))
	kubectl(t, c, "-n", agentNamespace, "rollout", "status", agentPods, "--timeout=180s")
}

func (b *byKubectl) accept(t *testing.T) {
	var csr string
	eventually(t, func() error {
		rows := kubectl(t, b.hub, "get", "csr", "--no-headers")
		for row := range strings.Lines(rows) {
			fields := strings.Fields(row)
			// NAME AGE SIGNERNAME REQUESTOR REQUESTEDDURATION CONDITION
			if len(fields) == 6 && strings.HasPrefix(fields[0], "c1-") && fields[5] == "Pending" {
				require.Equal(t, "kubernetes.io/kube-apiserver-client", fields[2])
				require.Equal(t, "system:serviceaccount:open-cluster-management:agent-registration-bootstrap", fields[3])
				csr = fields[0]
				return nil
			}
		}
		return fmt.Errorf("no pending CSR among:\n%s", rows)
	})
	asking := kubectl(t, b.hub, "get", "managedcluster", "c1", "--no-headers")
	require.NotContains(t, strings.ToLower(asking), "true", "a cluster that only asks is not accepted")

	kubectl(t, b.hub, "certificate", "approve", csr)
	kubectl(t, b.hub, "patch", "managedcluster", "c1", "--type=merge", "-p", `{"spec":{"hubAcceptsClient":true}}`)
	kubectl(t, b.hub, "wait", "--for=condition=ManagedClusterConditionAvailable", "managedcluster/c1", "--timeout=180s")

	table := kubectl(t, b.hub, "get", "managedcluster", "c1")
	require.Regexp(t, `^NAME +HUB ACCEPTED +MANAGED CLUSTER URLS +JOINED +AVAILABLE +AGE\n`, table)
	require.Regexp(t, `\nc1 +true .*True +True `, table)
	const requester = ` +\S+ +kubernetes.io/kube-apiserver-client +system:serviceaccount:open-cluster-management:agent-registration-bootstrap +<none> +`
	for _, state := range []string{"Pending", "Approved", "Approved,Issued"} {
		line := regexp.MustCompile(`(?m)^` + csr + requester + state + `$`)
		eventually(t, func() error {
			if !line.MatchString(b.requests.String()) {
				return fmt.Errorf("no request is %s in\n%s", state, b.requests)
			}
			return nil
		})
	}
	require.Regexp(t, `^NAME +AGE +SIGNERNAME +REQUESTOR +REQUESTEDDURATION +CONDITION\n`, b.requests.String())
	kubectl(t, b.hub, "-n", "c1", "get", "lease", "managed-cluster-lease")
	kubectl(t, b.managed[0], "-n", agentNamespace, "get", "secret", "hub-kubeconfig-secret")
}

func (b *byKubectl) set(t *testing.T) {
	body := "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: ManagedClusterSet\nmetadata:\n  name: prod\n"
	path := filepath.Join(t.TempDir(), "set.yaml")
	require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
	kubectl(t, b.hub, "apply", "-f", path)
	kubectl(t, b.hub, "wait", "--for=condition=ClusterSetEmpty=true", "managedclusterset/prod", "--timeout=180s")
	kubectl(t, b.hub, "label", "managedcluster", "c1", "cluster.open-cluster-management.io/clusterset=prod", "--overwrite")
	kubectl(t, b.hub, "wait", "--for=condition=ClusterSetEmpty=false", "managedclusterset/prod", "--timeout=180s")
	require.Equal(t, "prod", kubectl(t, b.hub, "get", "managedclustersets.v1beta1.cluster.open-cluster-management.io", "prod", "-o", "jsonpath={.metadata.name}"))
}

// claims writes the cluster claim of Open Cluster Management's page on placement, which
// selects the clusters of one cloud.
func (b *byKubectl) claims(t *testing.T) {
	b.claim(t, b.managed[0], "c1", "platform.open-cluster-management.io", "aws")
}

func (b *byKubectl) work(t *testing.T) {
	body := `apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata:
  namespace: c1
  name: mw-01
spec:
  workload:
    manifests:
    - apiVersion: v1
      kind: Pod
      metadata:
        name: hello
        namespace: default
        labels: {app: hello}
      spec:
        containers:
        - name: hello
          image: ghcr.io/kubectl-ocm/webdemo:` + version(t) + `
`
	path := filepath.Join(t.TempDir(), "work.yaml")
	require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
	kubectl(t, b.hub, "apply", "-f", path)
	kubectl(t, b.hub, "-n", "c1", "wait", "--for=condition=Applied", "manifestwork/mw-01", "--timeout=180s")
	kubectl(t, b.hub, "-n", "c1", "wait", "--for=condition=Available", "manifestwork/mw-01", "--timeout=180s")
	kubectl(t, b.managed[0], "wait", "--for=condition=Ready", "pod/hello", "--timeout=180s")
}

// addOn enables an add-on from a template, which only the hub's own process manages.
func (b *byKubectl) addOn(t *testing.T) {
	const group = "apiVersion: addon.open-cluster-management.io/v1alpha1\n"
	applyTo := func(c *nodes.Cluster, name, body string) {
		path := filepath.Join(t.TempDir(), name+".yaml")
		require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
		kubectl(t, c, "apply", "-f", path)
	}
	apply := func(name, body string) { applyTo(b.hub, name, body) }
	registered := func(strategy string) string {
		return group + `kind: ClusterManagementAddOn
metadata:
  name: hello
  annotations: {addon.open-cluster-management.io/lifecycle: addon-manager}
spec:
  addOnMeta: {displayName: Hello, description: Says hello on every cluster}
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: hello-1}}
  installStrategy: ` + strategy + "\n"
	}
	apply("template", group+`kind: AddOnTemplate
metadata: {name: hello-1}
spec:
  addonName: hello
  agentSpec:
    workload:
      manifests:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {namespace: default, name: hello-agent}
        spec:
          selector: {matchLabels: {app: hello-agent}}
          template:
            metadata: {labels: {app: hello-agent}}
            spec:
              containers: [{name: agent, image: "ghcr.io/kubectl-ocm/webdemo:`+version(t)+`"}]
`)
	apply("addon", registered("{type: Manual}"))
	require.Regexp(t, `^NAME +DISPLAY NAME\nhello +Hello`, kubectl(t, b.hub, "get", "clustermanagementaddons"))
	apply("byhand", group+"kind: ManagedClusterAddOn\nmetadata: {namespace: c1, name: hello}\nspec: {installNamespace: default}\n")
	b.hasAddOn(t)

	kubectl(t, b.hub, "-n", "c1", "delete", "managedclusteraddon", "hello", "--timeout=180s")
	kubectl(t, b.managed[0], "-n", "default", "wait", "--for=delete", "deployment/hello-agent", "--timeout=180s")
	applyTo(
		b.managed[0], "claim",
		"apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: ClusterClaim\nmetadata: {name: platform.open-cluster-management.io}\nspec: {value: aws}\n",
	)
	apply("placement", `apiVersion: cluster.open-cluster-management.io/v1beta2
kind: ManagedClusterSetBinding
metadata: {namespace: default, name: prod}
spec: {clusterSet: prod}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {namespace: default, name: aws}
spec:
  predicates:
  - requiredClusterSelector:
      claimSelector:
        matchExpressions: [{key: platform.open-cluster-management.io, operator: In, values: [aws]}]
`)
	apply("strategy", registered("{type: Placements, placements: [{namespace: default, name: aws}]}"))
	b.hasAddOn(t)
}

// hasAddOn waits until the add-on runs on the cluster, and checks what the hub reports.
func (b *byKubectl) hasAddOn(t *testing.T) {
	t.Helper()
	eventually(t, func() error {
		_, err := b.hub.Kubectl(t.Context(), "-n", "c1", "wait", "--for=condition=Available", "managedclusteraddon/hello", "--timeout=10s")
		return err
	})
	kubectl(t, b.managed[0], "-n", "default", "wait", "--for=condition=Available", "deployment/hello-agent", "--timeout=180s")
	eventually(t, func() error {
		table := kubectl(t, b.hub, "-n", "c1", "get", "managedclusteraddons")
		if !regexp.MustCompile(`^NAME +AVAILABLE +DEGRADED +PROGRESSING\nhello +True +False`).MatchString(table) {
			return fmt.Errorf("the add-on is not done:\n%s", table)
		}
		return nil
	})
}

func (b *byKubectl) deleteAddOn(t *testing.T) {
	kubectl(t, b.hub, "delete", "clustermanagementaddon", "hello", "--cascade=foreground", "--timeout=180s")
	require.Empty(t, kubectl(t, b.hub, "-n", "c1", "get", "managedclusteraddons", "-o", "name"))
	require.Empty(t, kubectl(t, b.hub, "-n", "c1", "get", "manifestworks", "-l", "open-cluster-management.io/addon-name=hello", "-o", "name"))
	kubectl(t, b.managed[0], "-n", "default", "wait", "--for=delete", "deployment/hello-agent", "--timeout=180s")
	kubectl(t, b.managed[0], "delete", "clusterclaim", "platform.open-cluster-management.io") // its kind stays while there is one
	kubectl(t, b.hub, "-n", "default", "delete", "placement/aws", "managedclustersetbinding/prod")
	kubectl(t, b.hub, "delete", "addontemplate", "hello-1")
}

// accessIsGuarded checks that a user without the right to accept clusters cannot accept
// one, whatever else the user may write, and that no cluster can have a name that is
// reserved by Kubernetes.
func (b *byKubectl) accessIsGuarded(t *testing.T) {
	kubectl(t, b.hub, "create", "clusterrole", "half", "--verb=*", "--resource=managedclusters.cluster.open-cluster-management.io")
	kubectl(t, b.hub, "create", "clusterrolebinding", "half", "--clusterrole=half", "--user=half")
	cluster := func(name string, accepted bool) string {
		body := fmt.Sprintf(
			"apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata:\n  name: %s\nspec:\n  hubAcceptsClient: %t\n",
			name, accepted,
		)
		path := filepath.Join(t.TempDir(), name+".yaml")
		require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
		return path
	}
	sneaky := cluster("sneaky", true)
	eventually(t, func() error { // until the API server knows of the rights, it refuses by itself
		_, err := b.hub.Kubectl(t.Context(), "--as=half", "create", "-f", sneaky)
		require.Error(t, err)
		if !strings.Contains(err.Error(), "denied the request") {
			return err
		}
		return nil
	})
	_, err := b.hub.Kubectl(t.Context(), "create", "-f", cluster("kube-system", false))
	require.ErrorContains(t, err, "denied the request")
	kubectl(t, b.hub, "delete", "clusterrole,clusterrolebinding", "half")
}

func (b *byKubectl) deleteWork(t *testing.T) {
	kubectl(t, b.hub, "-n", "c1", "delete", "manifestwork", "mw-01", "--timeout=180s")
	kubectl(t, b.managed[0], "wait", "--for=delete", "pod/hello", "--timeout=180s")
}

func (b *byKubectl) deleteKlusterlet(t *testing.T) {
	c := b.managed[0]
	kubectl(t, c, "delete", "klusterlet", "klusterlet", "--timeout=180s")
	kubectl(t, b.hub, "delete", "managedcluster", "c1", "--timeout=180s")
	b.requireAsBefore(t, c)
}

// deleteClusterManager removes everything that the hub process created, and the namespace
// of its certificates; deleting the files removes what was applied from them.
func (b *byKubectl) deleteClusterManager(t *testing.T) {
	kubectl(t, b.hub, "delete", "clustermanager", "cluster-manager", "--timeout=180s")
	definitions := kubectl(t, b.hub, "get", "crd", "-o", "name")
	require.Equal(t, "customresourcedefinition.apiextensions.k8s.io/"+hub.CRD, definitions, "the only definition that was applied from a file")
	kubectl(t, b.hub, "delete", "-f", b.static, "--ignore-not-found", "--timeout=180s")
	b.requireAsBefore(t, b.hub, namespaceOf("c1")...)
}
