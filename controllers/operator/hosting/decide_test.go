// SPDX-License-Identifier: Apache-2.0

package hosting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// state returns the State of a hub that can be reached, and has nothing yet.
func state(t *testing.T, change ...func(*State)) State {
	t.Helper()
	at := operatorv1.HostedWebhookConfiguration{Address: "10.0.0.1", Port: 443}
	cm := &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{
		Name: "east", UID: "u", Generation: 2, Finalizers: []string{operatorv1.FinalizerClusterManager},
	}}
	cm.Spec.DeployOption.Mode = operatorv1.InstallModeHosted
	cm.Spec.DeployOption.Hosted = &operatorv1.HostedClusterManagerConfiguration{RegistrationWebhookConfiguration: at, WorkWebhookConfiguration: at}
	s := State{ClusterManager: cm, Now: now, Version: "v1.0.0", Image: "ours:v1", Here: Here{Services: map[string]Seen{}}}
	s.Hub = Hub{Seen: map[reconcile.Target]Seen{}, Kubeconfig: []byte("k")}
	var err error
	s.Wanted, err = hub.Objects(hub.Options{Version: "v1.0.0", Hosted: true})
	require.NoError(t, err)
	for _, c := range change {
		c(&s)
	}
	return s
}

func withAccount(s *State) {
	s.Hub.Seen[reconcile.Target{Resource: accountsResource, Namespace: hub.Namespace, Name: hub.Name}] = Seen{Version: "1", UID: "a"}
}

func deleted(s *State) { s.ClusterManager.DeletionTimestamp = &metav1.Time{Time: now} }

func running(s *State) {
	s.Here.Deployment = &Deployment{Seen: Seen{UID: "d", Owner: "east"}, Generation: 7}
}

func condition(p Plan, kind string) metav1.Condition {
	cm, ok := p.Object.(*operatorv1.ClusterManager)
	if !ok {
		return metav1.Condition{}
	}
	if c := apimeta.FindStatusCondition(cm.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func TestWhatAHostedHubIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		change       func(*State)
		reason, text string
	}{
		"another mode":           {func(s *State) { s.ClusterManager.Spec.DeployOption.Mode = "" }, reasonNotServed, "mode Hosted"},
		"a namespace of its own": {func(s *State) { s.ClusterManager.Name = "open-cluster-management-hub" }, reasonNotServed, "another name"},
		"a name of no namespace": {func(s *State) { s.ClusterManager.Name = "a.b" }, reasonNotServed, "another name"},
		"an image of another distribution": {func(s *State) { s.ClusterManager.Spec.RegistrationImagePullSpec = "mirror.example/registration:v1" },
			reasonNotServed, `spec.registrationImagePullSpec="mirror.example/registration:v1"`},
		"no address": {func(s *State) { s.ClusterManager.Spec.DeployOption.Hosted = nil }, operatorv1.ReasonWebhookApplyFailed, "address is missing"},
		"the rights are missing": {func(s *State) { s.Here.Problem = "secrets is forbidden" },
			operatorv1.ReasonRuntimeResourceApplyFailed, hub.AllowHosting("east")},
		"the hub is away":         {func(s *State) { s.Hub.Problem = "away" }, operatorv1.ReasonHubResourceApplyFailed, "away"},
		"a Deployment of others":  {func(s *State) { running(s); s.Here.Deployment.Owner = "" }, operatorv1.ReasonRuntimeResourceApplyFailed, "belongs to others"},
		"a token of others":       {func(s *State) { s.Here.Token = &Seen{} }, operatorv1.ReasonRuntimeResourceApplyFailed, "belongs to others"},
		"a hub that is one":       {func(s *State) { s.Hub.Manager = &operatorv1.ClusterManager{} }, operatorv1.ReasonHubResourceApplyFailed, "is a hub already"},
		"a hub of another's hand": {func(s *State) { s.Hub.Manager = managerOf("east/other") }, operatorv1.ReasonHubResourceApplyFailed, "is a hub already"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(state(t, tc.change))
			require.Empty(t, p.Stages)
			c := condition(p, operatorv1.ConditionApplied)
			require.Equal(t, metav1.ConditionFalse, c.Status)
			require.Equal(t, tc.reason, c.Reason)
			require.Contains(t, c.Message, tc.text)
		})
	}
}

func managerOf(by string) *operatorv1.ClusterManager {
	return &operatorv1.ClusterManager{ObjectMeta: metav1.ObjectMeta{Generation: 1, Annotations: map[string]string{operatorv1.AnnotationHostedBy: by}}}
}

func TestAHostedHubIsInstalledInOrder(t *testing.T) {
	p := Decide(state(t, func(s *State) { s.ClusterManager.Finalizers = nil }))
	require.Empty(t, p.Stages, "the finalizer comes first")
	require.Equal(t, []string{operatorv1.FinalizerClusterManager}, p.Object.GetFinalizers())

	p = Decide(state(t))
	require.Len(t, p.Stages, 2, "without the account there is no token and no process")
	require.True(t, p.Stages[0].Hub && p.Stages[1].Hub)
	manager := p.Stages[1].Writes[0].(reconcile.Apply).Object.(*operatorv1.ClusterManager)
	require.Equal(t, hub.Name, manager.Name)
	require.Equal(t, "east/u", manager.Annotations[operatorv1.AnnotationHostedBy])
	require.Equal(t, operatorv1.InstallModeHosted, manager.Spec.DeployOption.Mode)
	for _, w := range p.Stages[0].Writes {
		require.NotContains(t, []string{"deployments", "services", "networkpolicies"}, reconcile.TargetOf(w).Resource.Resource)
	}

	p = Decide(state(t, withAccount, func(s *State) { s.ClusterManager.Spec.NodePlacement.NodeSelector = map[string]string{"disk": "ssd"} }))
	require.Len(t, p.Stages, 4)
	require.Equal(t, "cluster-manager", p.Stages[2].Token.Account)
	require.Equal(t, operatorv1.ReasonServiceAccountSyncFailed, p.Stages[2].Reason)
	require.Len(t, p.Stages[3].Writes, 5)
	for _, w := range p.Stages[3].Writes {
		require.Equal(t, "east", reconcile.TargetOf(w).Namespace)
	}
	u := p.Stages[3].Writes[4].(reconcile.Apply).Object.(*unstructured.Unstructured)
	require.Equal(t, "east", u.GetLabels()[operatorv1.LabelCreatedByClusterManager])
	d, err := typed.FromUnstructured[appsv1.Deployment](u)
	require.NoError(t, err)
	pod := d.Spec.Template.Spec
	require.Equal(t, []string{"run", "--hosted", "--kubeconfig=/var/run/secrets/hub/kubeconfig", "--namespace=open-cluster-management"}, pod.Containers[0].Args)
	require.Equal(t, "ours:v1", pod.Containers[0].Image)
	require.Equal(t, map[string]string{"disk": "ssd"}, pod.NodeSelector)
	require.Empty(t, pod.ServiceAccountName)
	require.False(t, *pod.AutomountServiceAccountToken)
	require.Contains(t, pod.Volumes, corev1.Volume{Name: "hub", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: tokenSecret}}})
	c := condition(p, operatorv1.ConditionHubRegistrationDegraded)
	require.Equal(t, operatorv1.ReasonGetRegistrationDeploymentFailed, c.Reason)

	p = Decide(state(t, withAccount, func(s *State) { s.KeepAPIs = true }))
	u = p.Stages[3].Writes[4].(reconcile.Apply).Object.(*unstructured.Unstructured)
	d, err = typed.FromUnstructured[appsv1.Deployment](u)
	require.NoError(t, err)
	require.Contains(t, d.Spec.Template.Spec.Containers[0].Args, hub.FlagKeepAPIs, "the process of the hub keeps what its operator keeps")
}

func TestTheHubReportsForItself(t *testing.T) {
	reported := func(s *State) {
		running(s)
		s.Hub.Manager = managerOf("east/u")
		s.Hub.Manager.Spec = s.ClusterManager.Spec
		s.Hub.Manager.Status.ObservedGeneration = 1
		s.Hub.Manager.Status.Conditions = []metav1.Condition{{Type: operatorv1.ConditionApplied, Status: "True", Reason: "ClusterManagerApplied", Message: "m"}}
	}
	p := Decide(state(t, withAccount, reported))
	require.Equal(t, metav1.ConditionTrue, condition(p, operatorv1.ConditionApplied).Status)
	require.EqualValues(t, 2, condition(p, operatorv1.ConditionApplied).ObservedGeneration)
	require.EqualValues(t, 7, p.Object.(*operatorv1.ClusterManager).Status.Generations[0].LastGeneration)
	for name, change := range map[string]func(*State){
		"its process is gone":     func(s *State) { s.Here.Deployment.Unavailable = true },
		"it reports on the past":  func(s *State) { s.Hub.Manager.Generation = 2 },
		"it has an earlier spec":  func(s *State) { s.Hub.Manager.Spec.WorkImagePullSpec = "x" },
		"its ClusterManager went": func(s *State) { s.Hub.Manager = nil },
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(state(t, withAccount, reported, change))
			require.Empty(t, condition(p, operatorv1.ConditionApplied).Status)
			require.Equal(t, operatorv1.ReasonClusterManagerDeploymentRolling, condition(p, operatorv1.ConditionProgressing).Reason)
		})
	}
}

func TestAHostedHubIsRemovedInOrder(t *testing.T) {
	const key = operatorv1.AnnotationManagedResourcesEvictionTimestamp
	away := func(s *State) { s.Hub.Problem = "away" }
	token := func(s *State) { s.Here.Token = &Seen{UID: "t", Owner: "east"} }

	require.Equal(t, Plan{}, Decide(state(t, deleted, func(s *State) { s.ClusterManager.Finalizers = nil })))
	p := Decide(state(t, deleted, running))
	require.EqualValues(t, "d", p.End.UID, "the process ends first")
	require.False(t, p.Clean)
	require.False(t, Decide(state(t, deleted, running, func(s *State) { s.Here.Deployment.Leaving = true })).Clean)
	require.True(t, Decide(state(t, deleted, token)).Clean)
	p = Decide(state(t, deleted, token, func(s *State) { s.Waiting = "cluster c1" }))
	require.Contains(t, condition(p, operatorv1.ConditionProgressing).Message, "cluster c1")
	require.NotEmpty(t, p.Object.GetFinalizers())
	for name, change := range map[string]func(*State){
		"cleaned":              func(s *State) { s.Cleaned = true },
		"it is another's now":  func(s *State) { s.Hub.Manager = managerOf("other/u") },
		"it has been given up": func(s *State) { away(s); s.ClusterManager.Annotations = map[string]string{key: "2026-08-01T11:54:00Z"} },
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(state(t, deleted, token, change))
			require.Len(t, p.Stages[0].Writes, 1, "what is here goes")
			require.Empty(t, p.Object.GetFinalizers())
		})
	}
	p = Decide(state(t, deleted, away))
	require.Equal(t, "2026-08-01T12:00:00Z", p.Object.GetAnnotations()[key], "the time runs")
	require.Contains(t, condition(p, operatorv1.ConditionProgressing).Message, key)
	p = Decide(state(t, deleted, away, func(s *State) { s.Hub.Absent = true }))
	require.Empty(t, p.Object.GetAnnotations()[key], "but not while the Secret is missing")
	p = Decide(state(t, deleted, func(s *State) {
		s.Here.Problem = "forbidden"
		s.ClusterManager.Annotations = map[string]string{key: "2026-08-01T11:54:00Z"}
	}))
	require.Empty(t, p.Object.GetFinalizers(), "also if nothing here can be read any more")
	require.Len(t, p.Events, 1)
}
