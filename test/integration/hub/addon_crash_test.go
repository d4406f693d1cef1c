// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/selection"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// addOnLoops are the control loops for add-ons.
var addOnLoops = loops{
	kinds:  []func(*runtime.Scheme) error{clusterv1.AddToScheme, clusterv1beta1.AddToScheme, selection.AddToScheme},
	limits: []manager.Kind{{Example: &clusterv1.ManagedCluster{}, Packed: true}},
	register: func(m *manager.Manager, dyn dynamic.Interface) {
		addon.Register(m, addon.Config{Client: dyn, Clock: clock.RealClock{}})
	},
}

// written returns everything that the add-on loops have written about the fan, one line
// each: hashes are given by name, and what differs between runs is left out.
func (f *fan) written(t *testing.T, hashes map[string]string) string {
	t.Helper()
	var out []string
	for _, c := range f.clusters {
		a := f.instance(t, c)
		if a == nil {
			continue
		}
		line := strings.TrimPrefix(c, f.namespace+"-") + fmt.Sprintf(" owners=%d", len(a.OwnerReferences))
		for _, r := range a.Status.ConfigReferences {
			line += " has=" + hashes[r.DesiredConfig.SpecHash]
			if r.LastAppliedConfig != nil {
				line += " applied=" + hashes[r.LastAppliedConfig.SpecHash]
			}
		}
		for _, k := range []string{addonv1alpha1.ConditionConfigured, addonv1alpha1.ConditionProgressing, addonv1alpha1.ConditionTokenInfrastructureReady} {
			for _, condition := range a.Status.Conditions {
				if condition.Type == k {
					line += " " + string(condition.Status) + "/" + condition.Reason
				}
			}
		}
		out = append(out, line)
	}
	a, err := typed.Get[addonv1alpha1.ClusterManagementAddOn](t.Context(), f.dyn, clusterAddOns, "", f.namespace)
	require.NoError(t, err)
	for _, p := range a.Status.InstallProgressions {
		out = append(out, hashes[p.ConfigReferences[0].DesiredConfig.SpecHash]+": "+p.Conditions[0].Message)
	}
	return strings.Join(out, "\n")
}

// tokenParts returns the UIDs of the accounts, roles and bindings of the token driver of
// a cluster.
func (s *scene) tokenParts(t *testing.T, cluster string) (accounts, roles, bindings []types.UID) {
	t.Helper()
	own := metav1.ListOptions{LabelSelector: addonv1alpha1.LabelTokenInfrastructure}
	a, err := s.kube.CoreV1().ServiceAccounts(cluster).List(t.Context(), own)
	require.NoError(t, err)
	for i := range a.Items {
		accounts = append(accounts, a.Items[i].UID)
	}
	r, err := s.kube.RbacV1().Roles(cluster).List(t.Context(), own)
	require.NoError(t, err)
	for i := range r.Items {
		roles = append(roles, r.Items[i].UID)
	}
	b, err := s.kube.RbacV1().RoleBindings(cluster).List(t.Context(), own)
	require.NoError(t, err)
	for i := range b.Items {
		bindings = append(bindings, b.Items[i].UID)
	}
	return accounts, roles, bindings
}

// mortal are add-on loops that die after each write.
type mortal struct {
	*fan
	config *rest.Config
	hashes map[string]string
	// uids are the UIDs of all instances so far, accounts the ones of one cluster since
	// forget.
	uids     map[string]types.UID
	accounts map[types.UID]bool
}

// dying runs the loops, which die after each write, until done returns true, and fails if
// an instance or an account was created twice.
func (m *mortal) dying(t *testing.T, what string, atLeast int, done func() bool) {
	t.Helper()
	lives := 0
	for ; !done(); lives++ {
		require.Less(t, lives, 60, "%s does not converge:\n%s", what, m.written(t, m.hashes))
		config, process := faults.StopAfter(m.config, 1)
		addOnLoops.run(t, config, process.Died(), done)
		for _, c := range m.clusters {
			if a := m.instance(t, c); a != nil {
				before, was := m.uids[c]
				require.True(t, !was || before == a.UID, "%s: the instance of %s was made twice", what, c)
				m.uids[c] = a.UID
			}
		}
		accounts, _, _ := m.tokenParts(t, m.clusters[0])
		for _, uid := range accounts {
			m.accounts[uid] = true
		}
		require.LessOrEqual(t, len(m.accounts), 1, "%s: the account was made twice", what)
	}
	t.Logf("%s: %d lives of one write", what, lives)
	require.GreaterOrEqual(t, lives, atLeast, what)
}

// until returns a function that reports whether the loops have written exactly these
// lines.
func (m *mortal) until(t *testing.T, lines ...string) func() bool {
	return func() bool { return m.written(t, m.hashes) == strings.Join(lines, "\n") }
}

// complete reports whether all three parts of the token driver exist and are right.
func (m *mortal) complete(t *testing.T) bool {
	t.Helper()
	accounts, roles, bindings := m.tokenParts(t, m.clusters[0])
	if len(accounts) != 1 || len(roles) != 1 || len(bindings) != 1 {
		return false
	}
	r, err := m.kube.RbacV1().Roles(m.clusters[0]).Get(t.Context(), m.namespace+"-token-role", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false // it is recreated
	}
	require.NoError(t, err)
	c := m.infrastructure(t, m.clusters[0], m.namespace)
	return len(r.Rules) == 1 && c != nil && c.Status == metav1.ConditionTrue && strings.Contains(c.Message, string(accounts[0]))
}

// TestTheAddOnLoopsMayDieAfterEveryWrite ends the loops after every write: when an add-on
// is new, when its clusters have it, when its configuration changes while a cluster
// leaves; when an agent switches to tokens, when what it needs for them is broken, and
// when it switches back. The result is always the same as without faults.
func TestTheAddOnLoopsMayDieAfterEveryWrite(t *testing.T) {
	t.Parallel()
	f := &fan{namespace: "frail", clusters: []string{"frail-0", "frail-1", "frail-2"}}
	s, config := served(t, append([]string{"frail"}, f.clusters...)...)
	f.scene = s
	s.allowTokens(t)
	for _, name := range f.clusters {
		mc := cluster(name)
		mc.Spec.HubAcceptsClient = true
		settled(t, func() error { return create(f.dyn, mc) })
	}
	m := &mortal{fan: f, config: config, hashes: map[string]string{f.settings(t, "one"): "one"}, uids: map[string]types.UID{}, accounts: map[types.UID]bool{}}

	f.place(t, "p", f.clusters...)
	f.offer(t, `{"type":"Placements","placements":[{"namespace":"frail","name":"p"}]}`)
	m.dying(t, "a new add-on", 3+3+1, m.until(t,
		"0 owners=1 has=one True/ConfigurationsConfigured False/WaitingForManifestApplied",
		"1 owners=1 has=one True/ConfigurationsConfigured False/WaitingForManifestApplied",
		"2 owners=1 has=one True/ConfigurationsConfigured False/WaitingForManifestApplied",
		"one: selected clusters 3. configured addons 3/3 progressing..., 0 failed 0 timeout."))
	for _, c := range f.clusters {
		f.deployAddOn(t, c)
	}
	m.dying(t, "an add-on that is there", 3+1, m.until(t,
		"0 owners=1 has=one applied=one True/ConfigurationsConfigured False/Completed",
		"1 owners=1 has=one applied=one True/ConfigurationsConfigured False/Completed",
		"2 owners=1 has=one applied=one True/ConfigurationsConfigured False/Completed",
		"one: selected clusters 3. configured addons 3/3 completed with no errors, 0 failed 0 timeout."))
	m.hashes[f.settings(t, "two")] = "two"
	f.place(t, "p", "frail-0", "frail-1")
	m.dying(t, "another configuration, and a cluster that leaves", 1+2+1, m.until(t,
		"0 owners=1 has=two applied=one True/ConfigurationsConfigured True/Progressing",
		"1 owners=1 has=two applied=one True/ConfigurationsConfigured True/Progressing",
		"two: selected clusters 2. configured addons 2/2 progressing..., 0 failed 0 timeout."))

	agent := &agent{dyn: s.dyn, kube: s.kube} // as the agent of the cluster, with the rights of the administrator
	s.wantAccess(t, "frail-0", "frail")
	agent.drive(t, "frail-0", "frail", "token")
	m.dying(t, "an agent that takes to tokens", 3+1, func() bool { return m.complete(t) })
	clear(m.accounts)
	require.NoError(t, s.kube.CoreV1().ServiceAccounts("frail-0").Delete(t.Context(), "frail-agent", metav1.DeleteOptions{}))
	_, err := s.kube.RbacV1().Roles("frail-0").Update(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
		Name: "frail-token-role", Labels: map[string]string{addonv1alpha1.LabelTokenInfrastructure: "true"},
	}}, metav1.UpdateOptions{})
	require.NoError(t, err)
	m.dying(t, "what it needs is broken", 1+2+1, func() bool { return m.complete(t) })
	agent.drive(t, "frail-0", "frail", "csr")
	m.dying(t, "it goes back to certificates", 3+1, func() bool {
		accounts, roles, bindings := m.tokenParts(t, "frail-0")
		return len(accounts)+len(roles)+len(bindings) == 0 && m.infrastructure(t, "frail-0", "frail") == nil
	})

	require.Empty(t, addOnLoops.rest(t, config, ""), "a start on what is done writes nothing")
}
