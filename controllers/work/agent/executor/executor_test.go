// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

func TestOf(t *testing.T) {
	named := func(namespace, name string) *workv1.ManifestWorkExecutor {
		return &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{
			Type: workv1.ExecutorSubjectTypeServiceAccount, ServiceAccount: &workv1.ManifestWorkSubjectServiceAccount{Namespace: namespace, Name: name},
		}}
	}
	for name, tc := range map[string]struct {
		executor *workv1.ManifestWorkExecutor
		want     Account
		err      string
	}{
		"none":       {},
		"an account": {executor: named("n", "robot"), want: Account{"n", "robot"}},
		"a user": {
			executor: &workv1.ManifestWorkExecutor{Subject: workv1.ManifestWorkExecutorSubject{Type: "User"}},
			err:      "only support ServiceAccount type for the executor",
		},
		"no type": {executor: &workv1.ManifestWorkExecutor{}, err: "only support ServiceAccount type for the executor"},
		"no account": {
			executor: &workv1.ManifestWorkExecutor{
				Subject: workv1.ManifestWorkExecutorSubject{Type: workv1.ExecutorSubjectTypeServiceAccount},
			},
			err: "the executor service account is nil",
		},
		"an account of no name": {
			executor: named("n", ""),
			err:      `spec.executor.subject.serviceAccount.name: "" is not the name of a ServiceAccount; correct it`,
		},
		"a name of two parts": {executor: named("n", "a:b"), err: "spec.executor.subject.serviceAccount.name"},
		"another namespace": {
			executor: named("kube-system:x", "a"),
			err:      "spec.executor.subject.serviceAccount.namespace",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Of(tc.executor)
			require.Equal(t, tc.want, got)
			if tc.err == "" {
				require.NoError(t, err)
				require.Equal(t, tc.executor == nil, got.IsAgent())
			} else {
				require.ErrorContains(t, err, tc.err)
			}
		})
	}
}

func TestRefusedTellsWhoseRightsAreMissing(t *testing.T) {
	robot := Account{"n", "robot"}
	maps := Object{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "n", Name: "one"}
	roles := Object{Resource: schema.GroupVersionResource{Group: groupRBAC, Version: "v1", Resource: "clusterroles"}, Name: "wide"}
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "one", errors.New(text))
	}
	escalation := forbidden(
		`user "system:serviceaccount:n:robot" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held: {...}`,
	)
	refused := forbidden(`User "system:serviceaccount:n:robot" cannot patch resource "configmaps" in API group "" in the namespace "n"`)
	for name, tc := range map[string]struct {
		err     error
		account Account
		object  Object
		want    string
	}{
		"no right": {
			refused,
			robot,
			maps,
			"not allowed to apply the resource  configmaps, n one, will try again in 1m0s; the API server refused ServiceAccount n/robot",
		},
		"no right on roles": {
			refused,
			robot,
			roles,
			"not allowed to apply the resource rbac.authorization.k8s.io clusterroles,  wide, will try again in 1m0s; ",
		},
		"an escalation": {
			escalation,
			robot,
			roles,
			"clusterroles,  wide, error: permission escalation, will try again in 1m0s; ServiceAccount n/robot may grant only rights",
		},
		"an aggregation": {
			forbidden("must have cluster-admin privileges to use an aggregationRule"),
			robot,
			roles,
			", error: permission escalation, ",
		},
		"escalation of what else": {escalation, robot, maps, ""},
		"another user": {
			forbidden(`User "system:serviceaccount:n:robot2" cannot patch resource`),
			robot,
			maps,
			"",
		},
		"the agent": {refused, Account{}, maps, ""},
		"the agent impersonates": {
			forbidden(`User "system:serviceaccount:n:robot" cannot impersonate resource "serviceaccounts"`),
			robot,
			maps,
			"",
		},
		"a quota": {forbidden("exceeded quota: count"), robot, maps, ""},
		"a namespace that is gone": {
			forbidden("unable to create new content in namespace n because it is being terminated"),
			robot,
			roles,
			"",
		},
		"a webhook": {
			errors.New(`admission webhook "x" denied the request: User "system:serviceaccount:n:robot" `),
			robot,
			maps,
			"",
		},
		"a conflict": {
			apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "one", errors.New("x")),
			robot,
			maps,
			"",
		},
		"nothing": {nil, robot, maps, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Refused(tc.err, tc.account, tc.object)
			var denied *DeniedError
			if tc.want == "" {
				require.Equal(t, tc.err, got)
				require.False(t, errors.As(got, &denied))
				return
			}
			require.ErrorAs(t, got, &denied)
			require.Contains(t, got.Error(), tc.want)
		})
	}
}

func TestTheHintGrantsExactlyWhatIsMissing(t *testing.T) {
	d := DeniedError{account: Account{"apps", "robot"}, missing: []string{"patch"}, object: Object{
		Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespace: "shop", Name: "web",
	}}
	require.Contains(t, d.Error(), "ServiceAccount apps/robot lacks patch; grant it on the managed cluster: "+
		"kubectl create role robot-deployments --verb=patch --resource=deployments.apps -n shop && "+
		"kubectl create rolebinding robot-deployments --role=robot-deployments --serviceaccount=apps:robot -n shop")
	d.object.Namespace = metav1.NamespaceNone
	require.Contains(t, d.Error(), "kubectl create clusterrole robot-deployments --verb=patch --resource=deployments.apps && "+
		"kubectl create clusterrolebinding robot-deployments --clusterrole=robot-deployments --serviceaccount=apps:robot")
}

func TestScopesAreKeptWhileAWorkNeedsThem(t *testing.T) {
	c := &Checker{works: map[string][]scope{}, scopes: map[scope]*rules{}, marked: map[scope]bool{}, news: make(chan struct{}, 1)}
	robot := Account{"apps", "robot"}
	here, there := scope{robot, "here"}, scope{robot, ""}
	require.Equal(t, []scope{here, there}, c.replace("a", []scope{here, there}))
	require.Equal(t, "apps", there.asked())
	require.Empty(t, c.replace("b", []scope{here}))
	require.Empty(t, c.replace("a", []scope{here, there}))
	c.mark(func(s scope) bool { return s.asked() == "here" })
	require.Len(t, c.news, 1)
	require.Equal(t, []scope{here}, c.takeMarked(false))
	require.Equal(t, []scope{here}, c.takeMarked(true))
	require.Empty(t, c.takeMarked(true))
	c.Forget("a")
	require.Equal(t, []scope{here}, c.allScopes())
	c.Forget("b")
	require.Empty(t, c.allScopes())
	require.Zero(t, c.Epoch(robot, "here"))
	<-c.news
	c.mark(func(scope) bool { return true })
	require.Empty(t, c.news)
}

func TestAUserStandsForAnAccountAndBack(t *testing.T) {
	for user, want := range map[string]Account{
		"system:serviceaccount:n:robot":   {Namespace: "n", Name: "robot"},
		"":                                {},
		"robot":                           {},
		"system:serviceaccount:n":         {},
		"system:serviceaccount::robot":    {},
		"system:serviceaccount:n:a:b":     {},
		"system:serviceaccount:n:../a":    {},
		"System:serviceaccount:n:robot":   {},
		"system:admin":                    {},
		"system:serviceaccount:n:robot\n": {},
	} {
		require.Equal(t, want, OfUser(user), user)
	}
	require.Equal(t, "system:serviceaccount:n:robot", Account{Namespace: "n", Name: "robot"}.User())
	require.Empty(t, Account{}.User())
}
