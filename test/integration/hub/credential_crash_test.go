// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/membership"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/credential"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// copyLoop is the control loop that copies tokens beside ClusterProfiles.
var copyLoop = loops{
	kinds: []func(*runtime.Scheme) error{clusterv1.AddToScheme, clusterv1beta2.AddToScheme},
	register: func(m *manager.Manager, dyn dynamic.Interface) {
		credential.Register(m, credential.Config{Client: dyn, Manager: dyn, Clock: clock.RealClock{}, Index: membership.New(m), Log: logr.Discard()})
	},
}

// lending is a hub whose cluster "lent" has tokens, and a profile in each of two namespaces.
type lending struct {
	credentialScene
	config *rest.Config
	// made are the UIDs of the copies.
	made map[string]types.UID
}

// TestTheLoopThatCopiesTokensMayDieAfterEveryWrite ends the loop after every write: when two tokens are copied beside
// two profiles, when a token is renewed, when somebody changes and deletes copies, and when an account goes. The
// result is always the same as without faults, and a copy that is there is not made again.
func TestTheLoopThatCopiesTokensMayDieAfterEveryWrite(t *testing.T) {
	t.Parallel()
	l := &lending{made: map[string]types.UID{}}
	l.scene, l.config = served(t, "lent", "readers", "others")
	for _, name := range []string{crd.ManagedServiceAccounts, crd.ClusterProfiles} {
		definition, err := crd.Any(name)
		require.NoError(t, err)
		_, err = l.dyn.Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	// The rights of the loop have tests of their own.
	_, err := l.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "all"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hub.Namespace, Name: hub.Name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	l.write(t, "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\nmetadata: {name: lenders}\nspec: {}")
	l.write(t, "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n"+
		"metadata: {name: lent, labels: {cluster.open-cluster-management.io/clusterset: lenders}}\nspec: {hubAcceptsClient: true}")
	for _, namespace := range []string{"readers", "others"} {
		l.write(t, "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\n"+
			"metadata: {name: lenders, namespace: "+namespace+"}\nspec: {clusterSet: lenders}")
		l.write(t, "apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ClusterProfile\nmetadata: {name: lent, namespace: "+namespace+
			", labels: {x-k8s.io/cluster-manager: open-cluster-management, open-cluster-management.io/cluster-name: lent}}\n"+
			"spec: {clusterManager: {name: open-cluster-management}, displayName: lent}")
	}

	l.lendAs(t, "web", "first")
	l.lendAs(t, "api", "other")
	l.dying(t, "two tokens beside two profiles", 4, map[string]string{"web": "first", "api": "other"})
	l.lendAs(t, "web", "second")
	l.dying(t, "a token that is renewed", 2, map[string]string{"web": "second", "api": "other"})

	secrets := l.kube.CoreV1().Secrets("readers")
	_, err = secrets.Patch(t.Context(), "lent-web", types.MergePatchType, []byte(`{"data":{"token":"eA==","more":"eA=="}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.NoError(t, secrets.Delete(t.Context(), "lent-api", metav1.DeleteOptions{}))
	delete(l.made, "readers/lent-api")
	l.dying(t, "copies that somebody changes and deletes", 2, map[string]string{"web": "second", "api": "other"})

	require.NoError(t, l.dyn.Resource(identities).Namespace("lent").Delete(t.Context(), "api", metav1.DeleteOptions{}))
	l.dying(t, "an account that goes", 2, map[string]string{"web": "second"})
}

// write creates an object, whose kind may not be served yet.
func (l *lending) write(t *testing.T, text string) {
	t.Helper()
	u := parsed(t, text)
	settled(t, func() error {
		_, err := l.dyn.Resource(reconcile.ResourceOf(u.GroupVersionKind())).Namespace(u.GetNamespace()).Create(t.Context(), u, metav1.CreateOptions{})
		return err
	})
}

// dying runs the loop, which dies after each write, until the copies beside both profiles are those of these tokens,
// by account.
func (l *lending) dying(t *testing.T, what string, atLeast int, tokens map[string]string) {
	t.Helper()
	lives := 0
	for ; !l.copied(t, what, tokens); lives++ {
		require.Less(t, lives, 20, "%s does not converge", what)
		config, process := faults.StopAfter(l.config, 1)
		copyLoop.run(t, config, process.Died(), func() bool { return l.copied(t, what, tokens) })
	}
	t.Logf("%s: %d lives of one write", what, lives)
	require.GreaterOrEqual(t, lives, atLeast, what)
}

// copied reports whether the copies are exactly those of the tokens. A copy never holds anything else than the two keys
// that belong to it, and is the one that it was.
func (l *lending) copied(t *testing.T, what string, tokens map[string]string) bool {
	t.Helper()
	list, err := typed.List[corev1.Secret](t.Context(), l.dyn, secrets, "", metav1.ListOptions{LabelSelector: "authentication.open-cluster-management.io/synced-from"})
	require.NoError(t, err)
	right := 0
	for i := range list {
		s := &list[i]
		at := s.Namespace + "/" + s.Name
		before, was := l.made[at]
		require.True(t, !was || before == s.UID, "%s: %s was made twice", what, at)
		l.made[at] = s.UID
		account := s.Name[len("lent-"):]
		if len(s.Data) == 2 && tokens[account] != "" && string(s.Data["token"]) == tokens[account] && string(s.Data["ca.crt"]) == "authority" {
			right++
		}
	}
	return right == len(list) && right == 2*len(tokens)
}
