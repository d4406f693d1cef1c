// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var (
	secrets            = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	provisioned        = schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta1", Resource: "clusters"}
	klusterlets        = operatorv1.GroupVersion.WithResource("klusterlets")
	clusterRoleBinding = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
)

// clusterAPI is as much of Cluster API's definition as the hub reads.
const clusterAPI = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: clusters.cluster.x-k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/cluster-api"}
spec:
  group: cluster.x-k8s.io
  scope: Namespaced
  names: {kind: Cluster, listKind: ClusterList, plural: clusters, singular: cluster}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, properties: {phase: {type: string}}}}}}
`

// importScene is a hub with a Cluster of Cluster API, fleet/one, that is another real cluster.
type importScene struct {
	*scene
	target *harness.Cluster
}

// TestClustersOfClusterAPIAreImported has a hub of its own, because the gate applies to the
// whole hub.
func TestClustersOfClusterAPIAreImported(t *testing.T) {
	t.Parallel()
	s := importScene{ownHub(t), harness.WithNode(t, "imported", map[string]string{"ocm-agent": harness.Program(t, "controllers/ocm-agent")})}
	s.open(t, "fleet")
	s.open(t, "imported") // for the Secret with values
	mc := cluster("imported")
	mc.Annotations = map[string]string{"cluster.x-k8s.io/cluster": "fleet/one"}
	require.NoError(t, create(s.dyn, mc))
	require.NoError(t, create(s.dyn, cluster("ordinary")))

	s.enableImporter(t)
	s.awaitImport(t, "imported", clusterv1.ReasonKubeConfigGetFailed, hub.AllowImporter)
	s.awaitHub(t) // without the rights and the kind the rest works
	s.grantImports(t)
	s.define(t)
	s.awaitImport(t, "imported", clusterv1.ReasonKubeConfigNotFound, "There is no Cluster fleet/one")
	s.phase(t, "Provisioning")
	s.awaitImport(t, "imported", clusterv1.ReasonKubeConfigNotFound, `its phase is "Provisioning"`)
	s.phase(t, "Provisioned")
	s.awaitImport(t, "imported", clusterv1.ReasonKubeConfigNotFound, "There is no Secret fleet/one-kubeconfig")

	t.Run("a hostile kubeconfig starts and reads nothing", s.testHostile)
	t.Run("wrong values are named", s.testWrongValues)
	t.Run("the agent is installed and joins", s.testImported)
	t.Run("what has another agent is left alone", s.testOccupied)
	require.Nil(t, apimeta.FindStatusCondition(s.get(t, "ordinary").Status.Conditions, clusterv1.ConditionImportSucceeded))
}

// enableImporter switches the gate on.
func (s importScene) enableImporter(t *testing.T) {
	t.Helper()
	body := `{"spec":{"registrationConfiguration":{"featureGates":[{"feature":"ClusterImporter","mode":"Enable"}]}}}`
	_, err := s.dyn.Resource(managers).Patch(t.Context(), hub.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	require.NoError(t, err)
}

// grantImports does what hub.AllowImporter does.
func (s importScene) grantImports(t *testing.T) {
	t.Helper()
	require.Equal(t, "kubectl set subject clusterrolebinding cluster-manager-importer --serviceaccount=open-cluster-management:cluster-manager"+
		" --serviceaccount=open-cluster-management-hub:registration-controller-sa", hub.AllowImporter)
	body := `{"subjects":[{"kind":"ServiceAccount","namespace":"open-cluster-management","name":"cluster-manager"}]}`
	_, err := s.dyn.Resource(clusterRoleBinding).Patch(t.Context(), "cluster-manager-importer", types.MergePatchType, []byte(body), metav1.PatchOptions{})
	require.NoError(t, err)
}

// define makes the kind Cluster served.
func (s importScene) define(t *testing.T) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(clusterAPI), &definition.Object))
	_, err := s.dyn.Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{})
	require.NoError(t, err)
	soon(t, func() bool {
		_, err = s.dyn.Resource(provisioned).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, "clusters are not served: %v", &err)
}

// phase sets the phase of fleet/one.
func (s importScene) phase(t *testing.T, phase string) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster"}}
	u.SetName("one")
	require.NoError(t, unstructured.SetNestedField(u.Object, phase, "status", "phase"))
	_, err := s.dyn.Resource(provisioned).Namespace("fleet").Apply(t.Context(), "one", u, metav1.ApplyOptions{FieldManager: "test"})
	require.NoError(t, err)
}

// secret creates or replaces a Secret with one key.
func (s importScene) secret(t *testing.T, namespace, name, key, value string) {
	t.Helper()
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{key: []byte(value)},
	}
	u, err := typed.ToUnstructured(secret)
	require.NoError(t, err)
	_, err = s.dyn.Resource(secrets).Namespace(namespace).Apply(t.Context(), name, u, metav1.ApplyOptions{FieldManager: "test"})
	require.NoError(t, err)
}

// provision makes the hub try again, with this kubeconfig and these values, if any. It begins when
// the hub has stopped trying with those of the time before.
func (s importScene) provision(t *testing.T, kubeconfig, values string) {
	t.Helper()
	s.phase(t, "Provisioning")
	s.awaitImport(t, "imported", clusterv1.ReasonKubeConfigNotFound, "Provisioning")
	s.secret(t, "fleet", "one-kubeconfig", "value", kubeconfig)
	if values != "" {
		s.secret(t, "imported", "cluster-import-config", "values.yaml", values)
	}
	s.phase(t, "Provisioned")
}

// awaitImport waits for the condition, and returns its message.
func (s importScene) awaitImport(t *testing.T, name, reason, message string) string {
	t.Helper()
	mc := s.await(t, name, reason+": "+message, func(mc *clusterv1.ManagedCluster) bool {
		c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionImportSucceeded)
		return c != nil && c.Reason == reason && strings.Contains(c.Message, message) &&
			(c.Status == metav1.ConditionTrue) == (reason == clusterv1.ReasonImportSucceed)
	})
	return apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionImportSucceeded).Message
}

// access returns the kubeconfig that Cluster API would keep of the target.
func (s importScene) access(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(s.target.Kubeconfig)
	require.NoError(t, err)
	require.NoError(t, clientcmdapi.FlattenConfig(config))
	raw, err := clientcmd.Write(*config)
	require.NoError(t, err)
	return string(raw)
}

func (s importScene) testHostile(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "started")
	hostile := func(user string) string {
		return `{clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}], contexts: [{name: x, context: {cluster: c, user: u}}],
current-context: x, users: [{name: u, user: ` + user + `}]}`
	}
	for user, want := range map[string]string{
		"{exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [" + marker + "], interactiveMode: Never}}": "exec and auth-provider are refused",
		"{tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token}":                                                      "tokenFile: it names a file",
		"{as: system:admin, token: hush}": "impersonation",
	} {
		s.provision(t, hostile(user), "")
		message := s.awaitImport(t, "imported", clusterv1.ReasonKubeConfigGetFailed, want)
		require.NotContains(t, message, "hush")
	}
	require.NoFileExists(t, marker)
	s.provision(t, hostile("{token: hush}"), "")
	require.NotContains(t, s.awaitImport(t, "imported", clusterv1.ReasonImportFailed, "connection refused"), "hush")
}

func (s importScene) testWrongValues(t *testing.T) {
	s.provision(t, s.access(t), "klusterlet: {clusterName: hush}\n")
	message := s.awaitImport(t, "imported", clusterv1.ReasonConfigRendererFailed, "klusterlet.clusterName must be imported or left out")
	require.NotContains(t, message, "hush")
}

func (s importScene) testImported(t *testing.T) {
	s.provision(t, s.access(t), "klusterlet: {registrationConfiguration: {clusterAnnotations: {agent.open-cluster-management.io/a: b}}}\n")
	s.awaitImport(t, "imported", clusterv1.ReasonImportSucceed, "The agent is installed")
	there := s.target.Dynamic(t)
	k, err := typed.Get[operatorv1.Klusterlet](t.Context(), there, klusterlets, "", operatorv1.DefaultKlusterletName)
	require.NoError(t, err)
	require.Equal(t, "imported", k.Spec.ClusterName)
	require.Equal(t, operatorv1.NamespaceAgent, k.Spec.Namespace)
	require.Equal(t, map[string]string{"agent.open-cluster-management.io/a": "b"}, k.Spec.RegistrationConfiguration.ClusterAnnotations)
	deployment, err := there.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).
		Namespace(operatorv1.NamespaceAgent).Get(t.Context(), "klusterlet-agent", metav1.GetOptions{})
	require.NoError(t, err)
	raw, err := deployment.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(raw), `"image":"ghcr.io/kubectl-ocm/ocm-agent:`+tag+`"`, "that beside the hub's")

	// From here it is as any other cluster: an administrator accepts it.
	var name string
	soon(t, func() bool {
		list, err := s.kube.CertificatesV1().CertificateSigningRequests().List(t.Context(),
			metav1.ListOptions{LabelSelector: clusterv1.LabelClusterName + "=imported"})
		require.NoError(t, err)
		for _, request := range list.Items {
			name = request.Name
		}
		return name != ""
	}, "the agent asks for no certificate")
	s.approve(t, name)
	s.accept(t, "imported", true)
	s.await(t, "imported", "is available", func(mc *clusterv1.ManagedCluster) bool {
		return apimeta.IsStatusConditionTrue(mc.Status.Conditions, clusterv1.ConditionAvailable)
	})
}

// testOccupied imports the same cluster under another name. Until that is refused, the loop has
// also seen that the first one is to be left alone.
func (s importScene) testOccupied(t *testing.T) {
	bootstrap := func() string {
		u, err := s.target.Dynamic(t).Resource(secrets).Namespace(operatorv1.NamespaceAgent).
			Get(t.Context(), operatorv1.SecretBootstrapHubKubeconfig, metav1.GetOptions{})
		require.NoError(t, err)
		return string(u.GetUID()) + u.GetResourceVersion()
	}
	before := bootstrap()
	s.phase(t, "Deleting")
	s.phase(t, "Provisioned")
	other := cluster("other")
	other.Annotations = map[string]string{"cluster.x-k8s.io/cluster": "fleet/one"}
	require.NoError(t, create(s.dyn, other))
	s.awaitImport(t, "other", clusterv1.ReasonImportFailed, "the cluster has a Klusterlet klusterlet that is not of this import")
	s.awaitImport(t, "imported", clusterv1.ReasonImportSucceed, "")
	require.Equal(t, before, bootstrap(), "it is not imported again")
}
