// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	serviceAccounts = "managed-serviceaccount"
	// deployer is an identity on c1, and what it may do there.
	deployer = `apiVersion: authentication.open-cluster-management.io/v1beta1
kind: ManagedServiceAccount
metadata: {name: deployer, namespace: c1}
spec: {rotation: {validity: 24h}}
---
apiVersion: rbac.open-cluster-management.io/v1alpha1
kind: ClusterPermission
metadata: {name: deployer, namespace: c1}
spec:
  roles:
  - namespace: default
    rules: [{apiGroups: [""], resources: [configmaps], verbs: [create, get, delete]}]
  roleBindings:
  - namespace: default
    roleRef: {kind: Role}
    subject: {apiGroup: authentication.open-cluster-management.io, kind: ManagedServiceAccount, name: deployer}
`
)

// identity gives the hub an identity on a cluster with the agent of the add-on in a pod, and
// uses it there: it may do what the ClusterPermission says, and nothing else.
func (a *addOns) identity(t *testing.T) {
	a.ocm(t, "hub", "init", "--feature-gates", "ManagedServiceAccount=true,ClusterPermission=true", "--context", "hub")
	eventually(t, func() error {
		_, err := a.hub.Kubectl(t.Context(), "get", "managedserviceaccounts,clusterpermissions", "-A")
		return err
	})
	kubectl(t, a.hub, "apply", "-f", addOnFile(t))
	a.ocm(t, "addon", "enable", serviceAccounts, "-c", "c1", "--context", "hub", "--wait")
	kubectl(t, a.hub, "apply", "-f", text(t, "deployer.yaml", deployer))
	kubectl(t, a.hub, "-n", "c1", "wait", "--for=condition=TokenReported", "managedserviceaccount/deployer", "--timeout=180s")
	kubectl(t, a.hub, "-n", "c1", "wait", "--for=condition=AppliedRBACManifestWork", "clusterpermission/deployer", "--timeout=180s")
	t.Logf("measured: the agent of the add-on holds %s", held(t, a.on("c1"), serviceAccounts))

	as := a.identityFile(t)
	run := func(words ...string) (string, error) {
		return a.on("c1").Kubectl(t.Context(), append([]string{"--kubeconfig", as}, words...)...)
	}
	who, err := run("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	require.NoError(t, err)
	require.Equal(t, "system:serviceaccount:"+placedNamespace+":deployer", who)
	_, err = run("-n", "default", "create", "configmap", "deployed", "--from-literal=by=deployer")
	require.NoError(t, err)
	_, err = run("-n", "default", "delete", "configmap", "deployed")
	require.NoError(t, err)
	_, err = run("-n", "kube-system", "get", "configmaps")
	require.ErrorContains(t, err, `cannot list resource "configmaps" in API group "" in the namespace "kube-system"`)
}

// addOnFile is the file that users apply for ManagedServiceAccounts.
func addOnFile(t *testing.T) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(root, "config/addon/managed-serviceaccount.yaml"))
	require.NoError(t, err)
	return file
}

// identityFile writes a kubeconfig of the token that the hub has of c1.
func (a *addOns) identityFile(t *testing.T) string {
	t.Helper()
	field := func(name string) string {
		return kubectl(t, a.hub, "-n", "c1", "get", "secret", "deployer", "-o", "jsonpath={.data."+name+"}")
	}
	token, err := base64.StdEncoding.DecodeString(field("token"))
	require.NoError(t, err)
	server := kubectl(t, a.on("c1"), "config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
	return text(t, "identity.yaml", fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c1, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: deployer, user: {token: %s}}]
contexts: [{name: c1, context: {cluster: c1, user: deployer}}]
current-context: c1
`, server, field(`ca\.crt`), token))
}

// identityLeaves takes the identity, its rights and the add-on away.
func (a *addOns) identityLeaves(t *testing.T) {
	kubectl(t, a.hub, "-n", "c1", "delete", "clusterpermission/deployer", "managedserviceaccount/deployer", "--timeout=180s")
	eventually(t, func() error {
		if out := kubectl(t, a.hub, "-n", "c1", "get", "secret/deployer", "--ignore-not-found", "-o", "name"); out != "" {
			return fmt.Errorf("%s is on the hub", out)
		}
		left := kubectl(t, a.on("c1"), "get", "serviceaccounts,roles,rolebindings", "-A", "--field-selector", "metadata.name=deployer", "-o", "name")
		if left != "" {
			return fmt.Errorf("%s are on the cluster", left)
		}
		return nil
	})
	a.ocm(t, "addon", "disable", serviceAccounts, "-c", "c1", "--context", "hub", "--yes")
	kubectl(t, a.hub, "delete", "-f", addOnFile(t), "--timeout=180s")
	a.requireNone(t, serviceAccounts)
}
