// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// state is an instance of an add-on that asks for access to the hub.
func state(permissions ...addonkit.Permission) State {
	i := instance()
	i.AddOn.UID, i.AddOn.Generation = "u", 2
	i.AddOn.OwnerReferences = []metav1.OwnerReference{{Kind: "ClusterManagementAddOn", Name: "web"}}
	return State{
		AddOn:         i.AddOn,
		Cluster:       &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}},
		Registrar:     true,
		Permissions:   permissions,
		Now:           start,
		Registrations: []addonv1alpha1.RegistrationConfig{KubeClient{}.registration(i)},
	}
}

func object(t *testing.T, p reconcile.Plan) *addonv1alpha1.ManagedClusterAddOn {
	t.Helper()
	o, ok := p.Object.(*addonv1alpha1.ManagedClusterAddOn)
	require.True(t, ok)
	return o
}

// said is the condition RegistrationApplied after a plan.
func said(t *testing.T, p reconcile.Plan) string {
	t.Helper()
	c := apimeta.FindStatusCondition(object(t, p).Status.Conditions, addonv1alpha1.ConditionRegistrationApplied)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

func TestRegistrationApplied(t *testing.T) {
	const fine = "Registration of the addon agent is configured"
	for name, tc := range map[string]struct {
		change        func(*State)
		want          string
		registrations int
	}{
		"it asks for access": {func(*State) {}, "True SetPermissionApplied: " + fine, 1},
		"it asks for nothing": {
			func(s *State) { s.Registrar, s.Registrations = false, nil },
			"True NilRegistration: " + fine,
			0,
		},
		"the add-on fails": {
			func(s *State) { s.Fault = errors.New("no value") },
			"False SetPermissionFailed: Failed to set permission for hub agent: no value",
			0,
		},
		"the subject is not ready": {
			func(s *State) { s.Fault = fmt.Errorf("cluster1: %w", addonkit.ErrSubjectNotReady) },
			"False PermissionConfigPending: cluster1: the identity of the agent is not known yet",
			1,
		},
		"rights without access": {
			func(s *State) {
				s.Registrations = nil
				s.Permissions = []addonkit.Permission{{Role: rbacv1.RoleRef{Kind: "Role", Name: "r"}}}
			},
			"False SetPermissionFailed: Failed to set permission for hub agent: the add-on has permissions but no " +
				"registration for the API server of the hub; add one with signer kubernetes.io/kube-apiserver-client",
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := state()
			tc.change(&s)
			p := Decide(s)
			require.Equal(t, tc.want, said(t, p))
			require.Equal(t, s.Fault != nil, p.RequeueAfter == 30*time.Second, "an add-on that failed is asked again")
			require.Len(t, object(t, p).Status.Registrations, tc.registrations)
			require.Empty(t, s.AddOn.Status.Registrations, "the object of the cache is left alone")
		})
	}
}

func TestNothingIsDecidedFor(t *testing.T) {
	gone := metav1.NewTime(start)
	for name, change := range map[string]func(*State){
		"an instance that is being deleted": func(s *State) { s.AddOn.DeletionTimestamp = &gone },
		"a cluster that is being deleted":   func(s *State) { s.Cluster.DeletionTimestamp = &gone },
	} {
		s := state()
		s.Bindings = []*rbacv1.RoleBinding{{ObjectMeta: s.meta("cluster1", "old")}}
		change(&s)
		require.Equal(t, reconcile.Plan{}, Decide(s), name)
	}
	s := state()
	s.AddOn.OwnerReferences = []metav1.OwnerReference{{Kind: "ClusterManagementAddOn", Name: "other"}}
	for age, rest := range map[time.Duration]time.Duration{-time.Hour: 10 * time.Second, time.Second: 9 * time.Second} {
		s.AddOn.CreationTimestamp = metav1.NewTime(s.Now.Add(-age))
		require.Equal(t, reconcile.Plan{RequeueAfter: rest}, Decide(s), "its owner is about to come")
	}
	s.AddOn.CreationTimestamp = metav1.NewTime(s.Now.Add(-10 * time.Second))
	p := Decide(s)
	require.Nil(t, p.Object, "without its owner nothing is deployed")
	require.Equal(t, "AddOnNotOwned", p.Events[0].Reason)
}

// TestRightsEndWithTheAcceptance: a certificate stays valid until it expires, whatever
// happens to its cluster.
func TestRightsEndWithTheAcceptance(t *testing.T) {
	gone := metav1.NewTime(start)
	for name, tc := range map[string]struct {
		change func(*State)
		want   string
	}{
		"not accepted any more": {
			func(s *State) { s.Cluster.Spec.HubAcceptsClient = false },
			"False PermissionConfigPending: cluster cluster1 is not accepted, so its agents have no permissions on the hub until an administrator accepts it",
		},
		"no such cluster": {
			func(s *State) { s.Cluster = nil },
			"False PermissionConfigPending: there is no ManagedCluster cluster1, so nothing is deployed and no " +
				"permissions are granted; join the cluster under this name, or delete the add-on",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(addonkit.Permission{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}}, named("Role", "shared", "infra"))
			p := Decide(s)
			carryOut(&s, p)
			s.AddOn = object(t, p)
			tc.change(&s)
			p = Decide(s)
			require.Equal(t, tc.want, said(t, p))
			taken := []string{
				"delete rolebindings cluster1/open-cluster-management:web:role:agent",
				"delete rolebindings infra/open-cluster-management:web:role:agent:cluster1",
				"delete roles cluster1/open-cluster-management:web:agent",
			}
			require.Equal(t, taken, outline(t, p))
			require.Equal(t, s.AddOn.Status.Registrations, object(t, p).Status.Registrations, "the registrations stay")
			rest := s
			rest.AddOn, rest.Roles, rest.Bindings = object(t, p), nil, nil
			require.Equal(t, rest.AddOn, Decide(rest).Object, "at rest nothing is written")

			s.AddOn.DeletionTimestamp = &gone
			p = Decide(s)
			require.Nil(t, p.Object)
			require.Equal(t, taken, outline(t, p), "also for an instance that is being deleted")
		})
	}
}

func TestRegistrationsThatContradictEachOther(t *testing.T) {
	signed := func(signers ...string) (out []addonv1alpha1.RegistrationConfig) {
		for _, s := range signers {
			out = append(out, addonv1alpha1.RegistrationConfig{SignerName: s})
		}
		return out
	}
	for want, registrations := range map[string][]addonv1alpha1.RegistrationConfig{
		"registrations[1].signerName: must be set; use kubernetes.io/kube-apiserver-client for access to the hub": signed(
			kube, "",
		),
		"registrations[2].signerName: " + kube + " uses the secret of registrations[0]; name each signer once, and make signers differ in more than / and -": signed(
			kube, "example.com/s", kube,
		),
		"registrations[1].signerName: a.com-b/c uses the secret of registrations[0]; name each signer once, and make signers differ in more than / and -": signed(
			"a.com/b-c", "a.com-b/c",
		),
	} {
		s := state(named("Role", "r", "infra"))
		carryOut(&s, Decide(s))
		s.AddOn = object(t, Decide(s))
		s.Registrations = registrations
		p := Decide(s)
		require.Equal(t, "False SetPermissionFailed: Failed to set permission for hub agent: "+want, said(t, p))
		require.Empty(t, outline(t, p), "what it has stays")
		require.Equal(t, s.AddOn.Status.Registrations, object(t, p).Status.Registrations)
	}
}

// TestTheFirstWriteSaysWhereHealthComesFrom: until then the definition's default holds, a lease.
func TestTheFirstWriteSaysWhereHealthComesFrom(t *testing.T) {
	s := state()
	s.HealthCheck = addonv1alpha1.HealthCheckModeCustomized
	require.Equal(t, s.HealthCheck, object(t, Decide(s)).Status.HealthCheck.Mode)
	s.AddOn.Status.HealthCheck.Mode, s.HealthCheck = addonv1alpha1.HealthCheckModeLease, ""
	require.Equal(t, addonv1alpha1.HealthCheckModeLease, object(t, Decide(s)).Status.HealthCheck.Mode)
}

// TestCredentialsWaitForTheirPlace: they are not put into the default namespace first
// and then moved by the configuration.
func TestCredentialsWaitForTheirPlace(t *testing.T) {
	s := state()
	s.Options.WaitConfigured, s.Options.Configs = true, []addonv1alpha1.ConfigGroupResource{{Resource: "configmaps"}}
	s.Fault = errors.New("the configuration is not known yet")
	p := Decide(s)
	require.Contains(t, said(t, p), "False PermissionConfigPending: waiting for condition Configured")
	require.Empty(t, object(t, p).Status.Registrations)
	require.Empty(t, object(t, p).Status.Namespace)
	require.Equal(t, s.Options.Configs, object(t, p).Status.SupportedConfigs, "the rollout asks for it")
	require.Zero(t, p.RequeueAfter)

	s.Fault, s.Namespace = nil, "elsewhere"
	s.AddOn = object(t, p)
	configured := metav1.Condition{Type: addonv1alpha1.ConditionConfigured, Status: metav1.ConditionTrue}
	s.AddOn.Status.Conditions = append(s.AddOn.Status.Conditions, configured)
	p = Decide(s)
	require.Contains(t, said(t, p), "True SetPermissionApplied")
	require.Equal(t, "elsewhere", object(t, p).Status.Namespace)

	// A registered add-on continues while it waits for its turn.
	s.AddOn = object(t, p)
	s.AddOn.Status.Conditions[len(s.AddOn.Status.Conditions)-1].Status = metav1.ConditionFalse
	require.Contains(t, said(t, Decide(s)), "True SetPermissionApplied")
	for name, change := range map[string]func(*State){
		"it does not wait":    func(s *State) { s.Options.WaitConfigured = false },
		"it reads none":       func(s *State) { s.Options.Configs = nil },
		"it asks for nothing": func(s *State) { s.Registrar, s.Registrations = false, nil },
	} {
		s := state()
		s.Options.WaitConfigured, s.Options.Configs = true, []addonv1alpha1.ConfigGroupResource{{Resource: "configmaps"}}
		change(&s)
		require.Contains(t, said(t, Decide(s)), "True", name)
	}
}

func TestStatusOfARegistration(t *testing.T) {
	s := state()
	s.Options.Configs = []addonv1alpha1.ConfigGroupResource{{Group: "g", Resource: "r"}}
	o := object(t, Decide(s))
	require.Equal(t, s.Options.Configs, o.Status.SupportedConfigs)
	require.Equal(t, "open-cluster-management-agent-addon", o.Status.Namespace)
	s.AddOn.Spec.InstallNamespace = "user"
	require.Equal(t, "user", object(t, Decide(s)).Status.Namespace)
	s.Namespace = "own"
	require.Equal(t, "own", object(t, Decide(s)).Status.Namespace)
	s.Registrar = false
	s.AddOn.Status.Namespace = "was"
	require.Equal(t, "was", object(t, Decide(s)).Status.Namespace, "without registrations it is left alone")

	s = state()
	o = object(t, Decide(s))
	require.Equal(t, addonv1alpha1.Subject{User: defaultUser, Groups: []string{ownGroup, everybodysOwn}}, o.Status.Registrations[0].Subject)
	s.AddOn.Status.KubeClientDriver = addonv1alpha1.DriverTypeToken
	s.Registrations = append(s.Registrations, addonv1alpha1.RegistrationConfig{SignerName: "example.com/s", Subject: addonv1alpha1.Subject{User: "x"}})
	o = object(t, Decide(s))
	require.Equal(t, []addonv1alpha1.RegistrationConfig{
		{SignerName: kube, Subject: addonv1alpha1.Subject{User: "system:serviceaccount:cluster1:web-agent"}},
		{SignerName: "example.com/s", Subject: addonv1alpha1.Subject{User: "x"}},
	}, o.Status.Registrations, "the agent and the hub do not write against each other")
	s.AddOn = o
	require.Equal(t, o, Decide(s).Object, "at rest nothing changes")
}

// outline is what a plan does to roles and bindings.
func outline(t *testing.T, p reconcile.Plan) []string {
	t.Helper()
	var out []string
	for i, w := range p.Writes {
		if gone, is := w.(reconcile.Remove); is {
			line := "delete " + gone.String()
			if i+1 < len(p.Writes) && reconcile.TargetOf(p.Writes[i+1]).Name == gone.Name {
				line = "replace " + gone.String()
			}
			out = append(out, line)
			continue
		}
		switch o := w.(reconcile.Apply).Object.(type) {
		case *rbacv1.Role:
			out = append(out, fmt.Sprintf("role %s/%s owners=%d", o.Namespace, o.Name, len(o.OwnerReferences)))
		case *rbacv1.RoleBinding:
			line := fmt.Sprintf("binding %s/%s owners=%d to %s %s:", o.Namespace, o.Name, len(o.OwnerReferences), o.RoleRef.Kind, o.RoleRef.Name)
			for _, s := range o.Subjects {
				line += " " + s.Kind + "=" + s.Name
			}
			out = append(out, line)
		}
	}
	return out
}

// carryOut puts what a plan applies into the state.
func carryOut(s *State, p reconcile.Plan) {
	for _, a := range reconcile.Of[reconcile.Apply](p.Writes) {
		switch o := a.Object.(type) {
		case *rbacv1.Role:
			s.Roles = append(s.Roles, o)
		case *rbacv1.RoleBinding:
			s.Bindings = append(s.Bindings, o)
		}
	}
}

func named(kind, name, namespace string) addonkit.Permission {
	return addonkit.Permission{Namespace: namespace, Role: rbacv1.RoleRef{Kind: kind, Name: name}}
}

func TestPermissions(t *testing.T) {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"", "apps"}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}}
	const who = " User=" + defaultUser + " Group=" + ownGroup
	s := state(addonkit.Permission{Rules: rules}, named("ClusterRole", "viewer", ""), named("ClusterRole", "editor", ""), named("Role", "shared", "infra"))
	p := Decide(s)
	require.Equal(t, []string{
		"role cluster1/open-cluster-management:web:agent owners=1",
		"binding cluster1/open-cluster-management:web:role:agent owners=1 to Role open-cluster-management:web:agent:" + who,
		"binding cluster1/open-cluster-management:web:clusterrole:agent owners=1 to ClusterRole viewer:" + who,
		"binding cluster1/open-cluster-management:web:clusterrole:agent:2 owners=1 to ClusterRole editor:" + who,
		"binding infra/open-cluster-management:web:role:agent:cluster1 owners=0 to Role shared:" + who,
	}, outline(t, p), "each has its own binding, without subjects of other clusters")
	require.Equal(
		t,
		map[string]string{"open-cluster-management.io/addon-name": "web", "open-cluster-management.io/cluster-name": "cluster1"},
		reconcile.Of[reconcile.Apply](p.Writes)[0].Object.GetLabels(),
	)
	require.Equal(t, addonv1alpha1.ReasonSetPermissionFailed, p.OnFailure.Reason)
	require.Contains(t, p.OnFailure.Message, "Failed to set permission for hub agent: an administrator can grant it with: "+
		"kubectl -n cluster1 create role open-cluster-management:web:agent --verb=get,list --resource=configmaps,configmaps.apps && ")
	require.Contains(
		t, p.OnFailure.Message,
		"kubectl -n infra create rolebinding open-cluster-management:web:role:agent:cluster1 --role=shared --user="+defaultUser+" --group="+ownGroup+";",
	)

	carryOut(&s, p)
	s.AddOn = object(t, p)
	rest := Decide(s)
	require.Empty(t, outline(t, rest))
	require.Equal(t, s.AddOn, rest.Object, "at rest nothing is written")

	s.AddOn.Status.KubeClientDriver = addonv1alpha1.DriverTypeToken
	require.Contains(
		t, outline(t, Decide(s)),
		"binding infra/open-cluster-management:web:role:agent:cluster1 owners=0 to Role shared: User=system:serviceaccount:cluster1:web-agent",
	)
	s.AddOn.Status.KubeClientDriver = ""

	s.Permissions = s.Permissions[1:2]
	s.Permissions[0].Role.Name = "other"
	require.Equal(t, []string{
		"replace rolebindings cluster1/open-cluster-management:web:clusterrole:agent",
		"binding cluster1/open-cluster-management:web:clusterrole:agent owners=1 to ClusterRole other:" + who,
		"delete rolebindings cluster1/open-cluster-management:web:role:agent",
		"delete rolebindings cluster1/open-cluster-management:web:clusterrole:agent:2",
		"delete rolebindings infra/open-cluster-management:web:role:agent:cluster1",
		"delete roles cluster1/open-cluster-management:web:agent",
	}, outline(t, Decide(s)), "what is not wanted any more is taken away")

	s.AddOn = nil
	require.Len(t, outline(t, Decide(s)), 5, "and all of it when the instance is gone, in every namespace")
}

func TestRightsOfOthersAreLeftAlone(t *testing.T) {
	s := state(named("Role", "r", "infra"))
	p := Decide(s)
	carryOut(&s, p)
	s.Bindings[0].Labels = nil
	require.Empty(t, outline(t, Decide(s)), "what an administrator has bound by hand counts")
	s.Permissions = nil
	require.Empty(t, outline(t, Decide(s)), "and is not taken away")
}

func TestRulesThatChange(t *testing.T) {
	s := state(addonkit.Permission{Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}})
	carryOut(&s, Decide(s))
	s.Permissions[0].Rules = []rbacv1.PolicyRule{{Verbs: []string{"list"}}}
	require.Equal(t, []string{"role cluster1/open-cluster-management:web:agent owners=1"}, outline(t, Decide(s)))
}

func TestPermissionsThatCannotBe(t *testing.T) {
	for want, p := range map[string]addonkit.Permission{
		"permissions[0]: names no role and has no rules; give it one of them":             {},
		`permissions[0].role.kind: "User" is not a kind of role; use Role or ClusterRole`: named("User", "x", ""),
	} {
		require.Equal(t, "False SetPermissionFailed: Failed to set permission for hub agent: "+want, said(t, Decide(state(p))))
		roles, bindings := Names(state(p))
		require.Empty(t, roles)
		require.Empty(t, bindings)
	}
}

func TestNames(t *testing.T) {
	roles, bindings := Names(state(addonkit.Permission{Rules: []rbacv1.PolicyRule{{}}}, named("Role", "r", "infra")))
	require.Equal(t, []reconcile.Key{{Namespace: "cluster1", Name: "open-cluster-management:web:agent"}}, roles)
	require.Equal(t, []reconcile.Key{
		{
			Namespace: "cluster1",
			Name:      "open-cluster-management:web:role:agent",
		}, {
			Namespace: "infra",
			Name:      "open-cluster-management:web:role:agent:cluster1",
		},
	}, bindings)
	roles, bindings = Names(State{})
	require.Empty(t, roles)
	require.Empty(t, bindings)
}
