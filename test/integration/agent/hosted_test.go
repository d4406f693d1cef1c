// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/unjoin"
)

// hosted is a Klusterlet of a cluster with an operator whose agent manages another cluster.
type hosted struct {
	*operated
	// there is the managed cluster, with the namespace of the agent on it.
	there *operated
}

// newHosted names a Klusterlet, and the namespace of its agent on the managed cluster.
func newHosted(host, managed *spoke, h *hub, name string) *hosted {
	o := &operated{spoke: host, h: h, name: name, namespace: name}
	return &hosted{operated: o, there: newOperated(managed, h, name)}
}

func (o *hosted) createIn(t *testing.T, mode string) {
	t.Helper()
	o.create(t, fmt.Sprintf(`{"namespace":%q,"deployOption":{"mode":%q}}`, o.there.namespace, mode))
}

// access returns a kubeconfig with all rights on the managed cluster.
func (o *hosted) access(t *testing.T) []byte {
	t.Helper()
	grantAll(t, o.there.client)
	cfg := o.there.As(t, "default", "operated-master")
	return []byte(strings.NewReplacer("tokenFile: token", "token: "+cfg.BearerToken).Replace(string(o.there.managedAccess(t, "context")["kubeconfig"])))
}

// open gives the operator access to the managed cluster.
func (o *hosted) open(t *testing.T) {
	t.Helper()
	await(t, func() bool { return o.live(t, namespaces, "", o.namespace) != nil })
	o.setSecret(t, operatorv1.SecretExternalManagedKubeconfig, map[string][]byte{"kubeconfig": o.access(t)})
	o.awaitCondition(t, operatorv1.ConditionReadyToApply, metav1.ConditionTrue, operatorv1.ReasonKlusterletPrepared)
}

// closedPort returns an address on which nothing answers.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return "https://" + l.Addr().String()
}

// lose replaces the access to the managed cluster by one that leads nowhere.
func (o *hosted) lose(t *testing.T) {
	t.Helper()
	text := strings.ReplaceAll(string(o.access(t)), o.there.As(t, "default", "operated-master").Host, closedPort(t))
	o.setSecret(t, operatorv1.SecretExternalManagedKubeconfig, map[string][]byte{"kubeconfig": []byte(text)})
	c := o.awaitCondition(t, operatorv1.ConditionReadyToApply, metav1.ConditionFalse, operatorv1.ReasonKlusterletPrepareFailed)
	require.Contains(t, c.Message, "cannot be reached")
}

func (o *hosted) awaitGoneHere(t *testing.T) {
	t.Helper()
	await(t, func() bool {
		return o.live(t, klusterlets, "", o.name) == nil && o.live(t, namespaces, "", o.namespace) == nil
	}, "klusterlet %s: %+v", o.name, func() any { return o.live(t, klusterlets, "", o.name) })
}

// labelled counts the objects with the label of the Klusterlet on the managed cluster.
func (o *hosted) labelled(t *testing.T) map[string]int {
	t.Helper()
	return countLabelled(t, o.there.spoke, o.name)
}

// testHosted: the agent runs here with nothing but the Secrets of its namespace, and everything
// else is on the managed cluster. It joins, applies works there, follows changes and leaves.
func testHosted(t *testing.T, o *hosted) {
	o.createIn(t, "SingletonHosted")
	c := o.awaitCondition(t, operatorv1.ConditionReadyToApply, metav1.ConditionFalse, operatorv1.ReasonKlusterletPrepareFailed)
	require.Contains(t, c.Message, "Secret "+o.name+"/external-managed-kubeconfig is missing")
	require.Equal(t, []string{operatorv1.FinalizerKlusterlet}, o.live(t, klusterlets, "", o.name).GetFinalizers())
	await(t, func() bool { return o.live(t, namespaces, "", o.namespace) != nil })
	o.setSecret(t, operatorv1.SecretBootstrapHubKubeconfig, map[string][]byte{"kubeconfig": o.h.bootstrap(t)})
	o.open(t)
	d := o.awaitDeployment(t, "-agent", exists)
	o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied)
	require.Contains(t, o.live(t, klusterlets, "", o.name).GetFinalizers(), operatorv1.FinalizerKlusterletHosted)
	require.Equal(t, map[string]int{
		"namespaces": 1, "serviceaccounts": 1, "clusterroles": 6, "clusterrolebindings": 7, "roles": 1, "rolebindings": 1, "deployments": 0,
	}, o.labelled(t))
	require.Equal(t, map[string]int{
		"namespaces": 1, "serviceaccounts": 1, "clusterroles": 0, "clusterrolebindings": 1, "roles": 2, "rolebindings": 2, "deployments": 1,
	}, countLabelled(t, o.spoke, o.name))
	require.Subset(t, d.Spec.Template.Spec.Containers[0].Args,
		[]string{"--spoke-kubeconfig=/spoke/config/kubeconfig", "--terminate-on-files=/spoke/config/kubeconfig"})

	a := o.start(t, "-agent")
	o.h.join(t, o.name)
	o.h.deliver(t, o.name, "hosted")
	await(t, func() bool { return o.there.live(t, configmaps, "default", "hosted-1") != nil })
	used := a.memory(t)
	t.Logf("measured: a hosted agent, just joined: %s", used)
	if len(raceFlags) == 0 {
		// The processes of a node share the pages of their program.
		require.Less(t, 100*used.Anon+used.Resident-used.Anon, int64(3<<30), "a hundred on one cluster")
	}
	require.Nil(t, o.live(t, configmaps, "default", "hosted-1"))

	// With its ServiceAccount, the token ends: the next one is for the new account.
	before := o.secretIn(t.Context(), o.namespace, "external-managed-kubeconfig-agent")
	o.there.remove(t, accounts, o.there.namespace, o.name+"-work-sa")
	await(t, func() bool {
		now := o.secretIn(t.Context(), o.namespace, "external-managed-kubeconfig-agent")
		return string(now["serviceaccount_uid"]) != string(before["serviceaccount_uid"]) && string(now["token"]) != string(before["token"])
	})
	o.switchHosted(t)
	o.leave(t)
	left := o.labelled(t)
	require.Equal(t, 0, left["clusterroles"]+left["clusterrolebindings"])
	rights, err := o.there.client.Resource(fleet.Roles).Namespace(operatorv1.NamespaceAgentAddOn).
		List(t.Context(), metav1.ListOptions{LabelSelector: operatorv1.LabelCreatedByKlusterlet + "=" + o.name})
	require.NoError(t, err)
	require.Empty(t, rights.Items, "the namespace of add-ons stays, and nothing of this agent in it")
	await(t, func() bool { return o.there.live(t, namespaces, "", o.there.namespace) == nil })
	require.NotNil(t, o.there.live(t, configmaps, "default", "hosted-1"), "what works applied stays")
	require.NotNil(t, o.there.live(t, namespaces, "", operatorv1.NamespaceAgentAddOn), "others need it")
}

// leave removes the agent as the plugin does: not while works are applied on the managed cluster,
// unless they are to stay. The operator does it, on both clusters.
func (o *hosted) leave(t *testing.T) {
	t.Helper()
	cluster, err := fleet.Connect(o.Config, "host")
	require.NoError(t, err)
	options := unjoin.Options{Common: fleet.Common{Timeout: wait}, Name: o.name, Spoke: cluster}
	result, err := unjoin.Run(t.Context(), options)
	require.ErrorContains(t, err, "1 work is applied")
	require.True(t, result.InTheWay)
	options.KeepWorks = true
	result, err = unjoin.Run(t.Context(), options)
	require.NoError(t, err)
	require.Empty(t, result.Leftovers)
	o.awaitGoneHere(t)
}

// switchHosted changes the mode in place, then the namespace on the managed cluster, and refuses to
// move the agent to the managed cluster.
func (o *hosted) switchHosted(t *testing.T) {
	t.Helper()
	o.run(t, "-agent")
	o.awaitCondition(t, operatorv1.ConditionAvailable, metav1.ConditionTrue, operatorv1.ReasonKlusterletAvailable)
	o.patch(t, klusterlets, "", o.name, `{"spec":{"deployOption":{"mode":"Hosted"}}}`)
	o.run(t, "-registration-agent")
	require.NotNil(t, o.deployment(t, "-agent"), "works are not applied yet")
	o.run(t, "-work-agent")
	await(t, func() bool { return o.deployment(t, "-agent") == nil })
	o.patch(t, klusterlets, "", o.name, `{"spec":{"deployOption":{"mode":"Default"}}}`)
	c := o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonKlusterletApplyFailed)
	require.Contains(t, c.Message, "cannot change")
	require.NotNil(t, o.deployment(t, "-work-agent"))
	old := o.there.namespace
	o.there.namespace = "open-cluster-management-hosted-moved"
	o.patch(t, klusterlets, "", o.name, `{"spec":{"namespace":"open-cluster-management-hosted-moved","deployOption":{"mode":"SingletonHosted"}}}`)
	o.run(t, "-agent")
	await(t, func() bool {
		return o.there.live(t, namespaces, "", old) == nil && o.deployment(t, "-work-agent") == nil
	})
}

// testHostedBroken: broken access is a condition, and harms nothing that runs.
func testHostedBroken(t *testing.T, o *hosted) {
	o.createIn(t, "Hosted")
	await(t, func() bool { return o.live(t, namespaces, "", o.namespace) != nil })
	for content, want := range map[string]string{
		"x": "not valid YAML of a kubeconfig",
		strings.ReplaceAll(string(o.access(t)), "token: ", "tokenFile: /"): "names a file",
	} {
		o.setSecret(t, operatorv1.SecretExternalManagedKubeconfig, map[string][]byte{"kubeconfig": []byte(content)})
		await(t, func() bool {
			c := o.awaitCondition(t, operatorv1.ConditionReadyToApply, metav1.ConditionFalse, operatorv1.ReasonKlusterletPrepareFailed)
			return strings.Contains(c.Message, want)
		})
	}
	self := newHosted(o.spoke, o.spoke, o.h, o.name)
	o.setSecret(t, operatorv1.SecretExternalManagedKubeconfig, map[string][]byte{"kubeconfig": self.access(t)})
	await(t, func() bool {
		c := o.awaitCondition(t, operatorv1.ConditionReadyToApply, metav1.ConditionFalse, operatorv1.ReasonKlusterletPrepareFailed)
		return strings.Contains(c.Message, "this very cluster")
	})
	o.open(t)
	uid := o.awaitDeployment(t, "-registration-agent", exists).UID
	o.lose(t)
	require.Equal(t, uid, o.deployment(t, "-registration-agent").UID)
	require.Equal(t, 6, o.labelled(t)["clusterroles"])

	// Deleted while the cluster is out of reach: the agents keep running, until the time is up.
	o.remove(t, klusterlets, "", o.name)
	const key = operatorv1.AnnotationManagedResourcesEvictionTimestamp
	await(t, func() bool { return o.live(t, klusterlets, "", o.name).GetAnnotations()[key] != "" })
	require.Equal(t, uid, o.deployment(t, "-registration-agent").UID)
	cluster, err := fleet.Connect(o.Config, "host")
	require.NoError(t, err)
	options := unjoin.Options{Common: fleet.Common{Timeout: wait}, Name: o.name, Spoke: cluster}
	_, err = unjoin.Run(t.Context(), options)
	require.ErrorContains(t, err, "cannot be reached")
	options.Force = true
	result, err := unjoin.Run(t.Context(), options)
	require.NoError(t, err)
	require.Empty(t, result.Leftovers)
	o.awaitGoneHere(t)
	require.Equal(t, 6, o.labelled(t)["clusterroles"], "what is out of reach stays")

	// One of the same name takes over what stayed, and takes it along.
	o.createIn(t, "Hosted")
	o.open(t)
	o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied)
	o.remove(t, klusterlets, "", o.name)
	o.awaitGoneHere(t)
	await(t, func() bool {
		left := o.labelled(t)
		return left["clusterroles"]+left["clusterrolebindings"]+left["namespaces"] == 0
	})
}

// testHostedReturns: deleted while its cluster is away, the agent runs on and says what is left to do;
// once the cluster answers again, both sides are cleaned up.
func testHostedReturns(t *testing.T, o *hosted) {
	o.createIn(t, "SingletonHosted")
	o.open(t)
	uid := o.awaitDeployment(t, "-agent", exists).UID
	o.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionTrue, operatorv1.ReasonKlusterletApplied)
	before := o.labelled(t)
	o.lose(t)
	o.remove(t, klusterlets, "", o.name)
	await(t, func() bool {
		c := o.awaitCondition(t, operatorv1.ConditionReadyToApply, metav1.ConditionFalse, operatorv1.ReasonKlusterletPrepareFailed)
		return strings.Contains(c.Message, "cannot be reached") && strings.Contains(c.Message, "still to be removed from the managed cluster")
	})
	require.NotEmpty(t, o.live(t, klusterlets, "", o.name).GetAnnotations()[operatorv1.AnnotationManagedResourcesEvictionTimestamp])
	require.Equal(t, uid, o.deployment(t, "-agent").UID, "it runs on")
	require.Equal(t, before, o.labelled(t))
	o.setSecret(t, operatorv1.SecretExternalManagedKubeconfig, map[string][]byte{"kubeconfig": o.access(t)})
	o.awaitGoneHere(t)
	await(t, func() bool {
		left := o.labelled(t)
		return left["clusterroles"]+left["clusterrolebindings"]+left["namespaces"] == 0
	})
}

// testHostedWithoutAccess: one that never had access leaves nothing; one that lost its Secret waits
// for another, and then cleans up.
func testHostedWithoutAccess(t *testing.T, o *hosted) {
	o.createIn(t, "SingletonHosted")
	o.awaitCondition(t, operatorv1.ConditionReadyToApply, metav1.ConditionFalse, operatorv1.ReasonKlusterletPrepareFailed)
	o.remove(t, klusterlets, "", o.name)
	o.awaitGoneHere(t)

	o.createIn(t, "SingletonHosted")
	o.open(t)
	o.awaitDeployment(t, "-agent", exists)
	o.remove(t, secrets, o.namespace, operatorv1.SecretExternalManagedKubeconfig)
	o.awaitCondition(t, operatorv1.ConditionReadyToApply, metav1.ConditionFalse, operatorv1.ReasonKlusterletPrepareFailed)
	o.remove(t, klusterlets, "", o.name)
	await(t, func() bool {
		c := o.awaitCondition(t, operatorv1.ConditionReadyToApply, metav1.ConditionFalse, operatorv1.ReasonKlusterletPrepareFailed)
		return strings.Contains(c.Message, "still to be removed")
	})
	require.NotNil(t, o.deployment(t, "-agent"))
	o.setSecret(t, operatorv1.SecretExternalManagedKubeconfig, map[string][]byte{"kubeconfig": o.access(t)})
	o.awaitGoneHere(t)
	await(t, func() bool { return o.labelled(t)["namespaces"] == 0 })
}

// testHostedRefused: names and namespaces of others are left alone.
func testHostedRefused(t *testing.T, o *hosted) {
	reserved := newHosted(o.spoke, o.there.spoke, o.h, "default")
	reserved.createIn(t, "SingletonHosted")
	c := reserved.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonKlusterletApplyFailed)
	require.Contains(t, c.Message, "choose another name")
	reserved.remove(t, klusterlets, "", "default")
	await(t, func() bool { return reserved.live(t, klusterlets, "", "default") == nil })
	require.Nil(t, o.live(t, namespaces, "", "default").GetDeletionTimestamp())

	o.createIn(t, "SingletonHosted")
	o.open(t)
	o.awaitDeployment(t, "-agent", exists)
	rival := newHosted(o.spoke, o.there.spoke, o.h, "hosted-rival")
	rival.there.namespace = o.there.namespace
	rival.createIn(t, "SingletonHosted")
	await(t, func() bool { return rival.live(t, namespaces, "", rival.namespace) != nil })
	rival.setSecret(t, operatorv1.SecretExternalManagedKubeconfig, map[string][]byte{"kubeconfig": rival.access(t)})
	await(t, func() bool {
		c := rival.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonKlusterletApplyFailed)
		return strings.Contains(c.Message, "is that of klusterlet/"+o.name)
	})

	// One that runs on the cluster it manages does not become a hosted one.
	local := newOperated(o.spoke, o.h, "hosted-not")
	local.create(t, `{"deployOption":{"mode":"Singleton"}}`)
	uid := local.awaitDeployment(t, "-agent", exists).UID
	local.patch(t, klusterlets, "", local.name, `{"spec":{"deployOption":{"mode":"SingletonHosted"}}}`)
	c = local.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonKlusterletApplyFailed)
	require.Contains(t, c.Message, "cannot change")
	require.Equal(t, uid, local.deployment(t, "-agent").UID)
	testHostedOnHub(t, o)
}

// testHostedOnHub: where the hosting cluster is a hub, the namespace in which it keeps the works of
// a cluster is not taken; one that it keeps them in later stays when the Klusterlet goes.
func testHostedOnHub(t *testing.T, later *hosted) {
	ofHub := fmt.Sprintf(`{"metadata":{"labels":{%q:"edge"}}}`, clusterv1.LabelClusterName)
	first := newHosted(later.spoke, later.there.spoke, later.h, "hosted-edge")
	apply(t, first.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": first.name},
	}})
	first.patch(t, namespaces, "", first.name, ofHub)
	first.createIn(t, "SingletonHosted")
	c := first.awaitCondition(t, operatorv1.ConditionApplied, metav1.ConditionFalse, operatorv1.ReasonKlusterletApplyFailed)
	require.Contains(t, c.Message, "is that of managed cluster edge, whose hub is this cluster")
	later.patch(t, namespaces, "", later.namespace, ofHub)
	for _, o := range []*hosted{first, later} {
		o.remove(t, klusterlets, "", o.name)
		await(t, func() bool { return o.live(t, klusterlets, "", o.name) == nil })
		ns := o.live(t, namespaces, "", o.namespace)
		require.Nil(t, ns.GetDeletionTimestamp())
		require.Empty(t, ns.GetLabels()[operatorv1.LabelCreatedByKlusterlet])
		require.Nil(t, o.live(t, secrets, o.namespace, operatorv1.SecretExternalManagedKubeconfig))
		for kind, n := range countLabelled(t, o.spoke, o.name) {
			require.Zero(t, n, kind)
		}
	}
}

// testHostedParts: each process has an account of its own on the managed cluster, and what somebody
// changes there is put back.
func testHostedParts(t *testing.T, o *hosted) {
	o.createIn(t, "Hosted")
	o.open(t)
	o.awaitDeployment(t, "-registration-agent", exists)
	w := o.awaitDeployment(t, "-work-agent", func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 0 })
	mounted := map[string]string{}
	for _, v := range w.Spec.Template.Spec.Volumes {
		mounted[v.Name] = v.Secret.SecretName
	}
	require.Equal(t, map[string]string{
		"hub-kubeconfig-secret": "hub-kubeconfig-secret", "spoke-kubeconfig-secret": "external-managed-kubeconfig-work",
	}, mounted)
	token := o.secretIn(t.Context(), o.namespace, "external-managed-kubeconfig-work")
	require.Equal(t, o.name+"-work-sa", string(token["serviceaccount_name"]))
	require.NotContains(t, string(token["kubeconfig"]), string(token["token"]))
	ends, err := time.Parse(time.RFC3339, string(token["expiration"]))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(7*24*time.Hour), ends, time.Hour)
	role := "kubectl-ocm:" + o.name + "-work:agent"
	o.there.patch(t, clusterRoles, "", role, `{"rules":[]}`)
	await(t, func() bool { return o.there.live(t, clusterRoles, "", role).Object["rules"] != nil })
}

// grantAll gives all rights on a cluster to the ServiceAccount operated-master.
func grantAll(t *testing.T, client dynamic.Interface) {
	t.Helper()
	apply(t, client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "operated-master"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "operated-master", "namespace": "default"}},
	}})
}
