// SPDX-License-Identifier: Apache-2.0

package serviceaccount_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/addonhealth"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/membership"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/profile"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/credential"
	accounthub "github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// patience bounds every wait. A loop may try what failed again after a minute.
const patience = 3 * time.Minute

var (
	asked      = authenticationv1beta1.GroupVersion.WithResource("managedserviceaccounts")
	addOns     = addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")
	clusters   = clusterv1.GroupVersion.WithResource("managedclusters")
	secrets    = corev1.SchemeGroupVersion.WithResource("secrets")
	accounts   = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	namespaces = corev1.SchemeGroupVersion.WithResource("namespaces")
)

// scene is a hub with its loops, and a cluster.
type scene struct {
	hub, spoke     *harness.Cluster
	onHub, onSpoke dynamic.Interface
	template       []*unstructured.Unstructured
	installed      sync.Once
	// loops is the traffic of the loops of the hub.
	loops faults.Process
}

var shared scene

// start returns the hub with its loops and the cluster; all tests share both.
func start(t *testing.T) *scene {
	t.Helper()
	first, second := harness.Shared(t, "hub"), harness.Shared(t, "spoke")
	s := &shared
	s.installed.Do(func() {
		s.hub, s.spoke, s.onHub, s.onSpoke = first, second, first.Dynamic(t), second.Dynamic(t)
		s.install(t)
	})
	return s
}

// install applies what the operator and an administrator apply, and starts the hub's loops.
func (s *scene) install(t *testing.T) {
	t.Helper()
	definitions, err := crd.Hub()
	require.NoError(t, err)
	for _, name := range []string{crd.ManagedServiceAccounts, crd.ClusterProfiles} {
		own, err := crd.Get(name)
		require.NoError(t, err)
		definitions = append(definitions, own)
	}
	objects, err := hub.Objects(hub.Options{Image: "none", Version: "v0.0.0-test", Credentials: true})
	require.NoError(t, err)
	component, err := hub.Component("addon-manager-controller")
	require.NoError(t, err)
	for _, u := range slices.Concat(definitions, objects, component) {
		if u.GetKind() != "Deployment" && u.GetKind() != "ClusterManager" {
			apply(t, s.onHub, u)
		}
	}
	for _, u := range documents(t) {
		apply(t, s.onHub, u)
		if u.GetKind() == "AddOnTemplate" {
			manifests, _, err := unstructured.NestedSlice(u.Object, "spec", "agentSpec", "workload", "manifests")
			require.NoError(t, err)
			for _, m := range manifests {
				s.template = append(s.template, &unstructured.Unstructured{Object: m.(map[string]any)})
			}
		}
	}
	require.NotEmpty(t, s.template)
	s.runHub(t)
}

// documents are those of the file that an administrator applies.
func documents(t *testing.T) (out []*unstructured.Unstructured) {
	t.Helper()
	text, err := os.ReadFile("../../../config/addon/managed-serviceaccount.yaml")
	require.NoError(t, err)
	for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(part, &u.Object))
		out = append(out, u)
	}
	return out
}

// runHub runs the hub's loops with the accounts of the hub, until the process ends.
func (s *scene) runHub(t *testing.T) {
	t.Helper()
	config := s.loops.On(s.hub.As(t, hub.Namespace, hub.Name), "loops")
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	granting, err := dynamic.NewForConfig(s.loops.On(s.hub.As(t, hub.ComponentNamespace, hub.AddOnManager), "loops"))
	require.NoError(t, err)
	kinds := runtime.NewScheme()
	require.NoError(t, clusterv1.AddToScheme(kinds))
	require.NoError(t, addonhealth.AddToScheme(kinds))
	require.NoError(t, clusterv1beta2.AddToScheme(kinds))
	require.NoError(t, multiclusterv1alpha1.AddToScheme(kinds))
	m, err := manager.New(manager.Options{Config: config, Scheme: kinds, Clock: clock.RealClock{}})
	require.NoError(t, err)
	accounthub.Register(m, accounthub.Config{Client: client, Manager: granting, Clock: clock.RealClock{}, Lifetime: true})
	profile.Register(m, profile.Config{Client: client, Clock: clock.RealClock{}, Index: membership.New(m)})
	go func() { _ = m.Run(context.Background()) }()
	s.runAlone(t, kinds, granting)
}

// runAlone runs the loop that copies tokens as in the split layout, where the add-on manager reads
// everything itself.
func (s *scene) runAlone(t *testing.T, kinds *runtime.Scheme, client dynamic.Interface) {
	t.Helper()
	m, err := manager.New(manager.Options{Config: s.hub.As(t, hub.ComponentNamespace, hub.AddOnManager), Scheme: kinds, Clock: clock.RealClock{}})
	require.NoError(t, err)
	credential.Register(m, credential.Config{Client: client, Manager: client, Clock: clock.RealClock{}, Index: membership.New(m)})
	go func() { _ = m.Run(context.Background()) }()
}

// apply applies an object as an administrator.
func apply(t *testing.T, client dynamic.Interface, u *unstructured.Unstructured) {
	t.Helper()
	var err error
	harness.Until(patience, func() bool { // a kind that was just defined may not be served yet
		_, err = client.Resource(reconcile.ResourceOf(u.GroupVersionKind())).Namespace(u.GetNamespace()).
			Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "test", Force: true})
		return err == nil || !apierrors.IsNotFound(err)
	})
	require.NoError(t, err, "%s %s", u.GetKind(), u.GetName())
}

// place is a cluster that is registered on the hub, with the add-on, and the agent that serves
// it. Its namespace on the hub and that of its agent are the test's own.
type place struct {
	*scene
	// cluster is the name of the cluster, and namespace that of the accounts.
	cluster, namespace string
	clock              *clocktesting.FakePassiveClock
	stop               func()
}

// join registers a cluster that has the add-on, and starts its agent.
func (s *scene) join(t *testing.T, name string) *place {
	t.Helper()
	s.hub.Claim(t, name)
	p := &place{scene: s, cluster: name, namespace: "agents-" + name, clock: clocktesting.NewFakePassiveClock(time.Now())}
	apply(t, s.onHub, object("v1", "Namespace", "", name))
	registered := object(clusterv1.GroupVersion.String(), "ManagedCluster", "", name)
	registered.Object["spec"] = map[string]any{"hubAcceptsClient": true}
	apply(t, s.onHub, registered)
	enabled := object(addonv1alpha1.GroupVersion.String(), "ManagedClusterAddOn", name, authenticationv1beta1.AddOnName)
	enabled.Object["spec"] = map[string]any{}
	apply(t, s.onHub, enabled)
	apply(t, s.onSpoke, object("v1", "Namespace", "", p.namespace))
	t.Cleanup(func() {
		ctx := context.Background()
		_ = s.onHub.Resource(clusters).Delete(ctx, name, metav1.DeleteOptions{})
		_ = s.onHub.Resource(namespaces).Delete(ctx, name, metav1.DeleteOptions{})
		_ = s.onSpoke.Resource(namespaces).Delete(ctx, p.namespace, metav1.DeleteOptions{})
	})
	p.grant(t)
	p.start(t, s.hub.Config.Host)
	return p
}

func object(version, kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// grant gives the agent the rights of the template, in the namespace of the test.
func (p *place) grant(t *testing.T) {
	t.Helper()
	for _, u := range p.template {
		u = u.DeepCopy()
		switch u.GetKind() {
		case "Deployment":
			continue
		case "ClusterRoleBinding":
			u.SetName(u.GetName() + ":" + p.cluster)
			client := p.onSpoke.Resource(reconcile.ResourceOf(u.GroupVersionKind()))
			t.Cleanup(func() { _ = client.Delete(context.Background(), u.GetName(), metav1.DeleteOptions{}) })
			fallthrough
		case "RoleBinding":
			subject := map[string]any{"kind": "ServiceAccount", "name": "managed-serviceaccount", "namespace": p.namespace}
			require.NoError(t, unstructured.SetNestedSlice(u.Object, []any{subject}, "subjects"))
		}
		if u.GetNamespace() != "" {
			u.SetNamespace(p.namespace)
		}
		apply(t, p.onSpoke, u)
	}
}

// identity returns the configuration with which the agent of a cluster reaches the hub: the
// user and exactly the groups of its certificate.
func (s *scene) identity(cluster string) *rest.Config {
	who := identity.AddOn{Cluster: cluster, Name: authenticationv1beta1.AddOnName}
	config := rest.CopyConfig(s.hub.Config)
	config.QPS = -1
	config.Impersonate = rest.ImpersonationConfig{UserName: who.User("agent"), Groups: append(who.Groups(), "system:authenticated")}
	return config
}

// start starts the agent, which knows the hub under an address.
func (p *place) start(t *testing.T, address string) {
	t.Helper()
	p.startAs(t, &faults.Process{}, address)
}

// startAs starts the agent as a process.
func (p *place) startAs(t *testing.T, process *faults.Process, address string) {
	t.Helper()
	onHub, err := dynamic.NewForConfig(process.On(p.identity(p.cluster), "hub"))
	require.NoError(t, err)
	onSpoke, err := dynamic.NewForConfig(process.On(p.spoke.As(t, p.namespace, "managed-serviceaccount"), "cluster"))
	require.NoError(t, err)
	loop := agent.New(agent.Config{
		Hub: onHub, Managed: onSpoke, Cluster: p.cluster, Namespace: p.namespace, HubAddress: address, Clock: p.clock,
		CA: func() ([]byte, error) { return p.spoke.Config.CAData, nil },
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx) }()
	p.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(p.stop)
}

// ask creates a ManagedServiceAccount; spec is its JSON.
func (p *place) ask(t *testing.T, name, spec string) {
	t.Helper()
	u := object(authenticationv1beta1.GroupVersion.String(), "ManagedServiceAccount", p.cluster, name)
	content := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(spec), &content))
	u.Object["spec"] = content
	_, err := p.onHub.Resource(asked).Namespace(p.cluster).Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
}

// await waits until a ManagedServiceAccount is as wanted.
func (p *place) await(t *testing.T, name string, ok func(*authenticationv1beta1.ManagedServiceAccount) bool) *authenticationv1beta1.ManagedServiceAccount {
	t.Helper()
	var last *authenticationv1beta1.ManagedServiceAccount
	require.True(t, harness.Until(patience, func() bool {
		a, err := typed.Get[authenticationv1beta1.ManagedServiceAccount](t.Context(), p.onHub, asked, p.cluster, name)
		require.NoError(t, err)
		last = a
		return ok(a)
	}), "%s: %v", name, stringer(func() any { return last.Status }))
	return last
}

// stringer prints what a value is when a test has failed.
type stringer func() any

// String implements fmt.Stringer.
func (f stringer) String() string { return fmt.Sprintf("%+v", f()) }

// says reports whether a condition has a status and a reason.
func says(kind string, status metav1.ConditionStatus, reason string) func(*authenticationv1beta1.ManagedServiceAccount) bool {
	return func(a *authenticationv1beta1.ManagedServiceAccount) bool {
		c := apimeta.FindStatusCondition(a.Status.Conditions, kind)
		return c != nil && c.Status == status && c.Reason == reason
	}
}

// reported waits until there is a token, and returns the Secret.
func (p *place) reported(t *testing.T, name string) (*authenticationv1beta1.ManagedServiceAccount, *corev1.Secret) {
	t.Helper()
	a := p.await(t, name, says("TokenReported", metav1.ConditionTrue, "TokenReported"))
	return a, p.secret(t, name)
}

// secret returns the Secret, or nil.
func (p *place) secret(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	s, err := typed.Get[corev1.Secret](t.Context(), p.onHub, secrets, p.cluster, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return s
}

// renewed waits until the Secret holds another token than before.
func (p *place) renewed(t *testing.T, name string, before *corev1.Secret) *corev1.Secret {
	t.Helper()
	var now *corev1.Secret
	require.True(t, harness.Until(patience, func() bool {
		now = p.secret(t, name)
		return now != nil && !bytes.Equal(now.Data["token"], before.Data["token"]) && bytes.Count(now.Data["token"], []byte(".")) == 2
	}), "the token is not renewed")
	return now
}

// account returns the ServiceAccount on the cluster, or nil.
func (p *place) account(t *testing.T, name string) *corev1.ServiceAccount {
	t.Helper()
	a, err := typed.Get[corev1.ServiceAccount](t.Context(), p.onSpoke, accounts, p.namespace, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return a
}

// touch changes a ManagedServiceAccount, so that its agent looks at it again.
func (p *place) touch(t *testing.T, name, value string) {
	t.Helper()
	p.patch(t, p.onHub, asked, reconcile.Key{Namespace: p.cluster, Name: name}, `{"metadata":{"annotations":{"touched":"`+value+`"}}}`)
}

// patch changes an object as an administrator.
func (p *place) patch(t *testing.T, client dynamic.Interface, resource schema.GroupVersionResource, key reconcile.Key, body string) {
	t.Helper()
	_, err := client.Resource(resource).Namespace(key.Namespace).Patch(t.Context(), key.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	require.NoError(t, err)
}

// login reads the accounts of the cluster's namespace with the token and the authority of a
// Secret, and returns the answer's error: forbidden means that the cluster knows the bearer.
func (p *place) login(t *testing.T, s *corev1.Secret) error {
	t.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{
		Host: p.spoke.Config.Host, BearerToken: string(s.Data["token"]), TLSClientConfig: rest.TLSClientConfig{CAData: s.Data["ca.crt"]},
	})
	require.NoError(t, err)
	_, err = client.Resource(accounts).Namespace(p.namespace).List(t.Context(), metav1.ListOptions{})
	return err
}
