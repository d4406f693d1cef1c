// SPDX-License-Identifier: Apache-2.0

package templated

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// said holds the contents of configurations.
type said map[addonv1alpha1.AddOnConfig]config.Content

func (s said) Get(at addonv1alpha1.AddOnConfig) (config.Content, bool) {
	content, ok := s[at]
	return content, ok
}

func hello() addonv1alpha1.AddOnConfig {
	return addonv1alpha1.AddOnConfig{
		ConfigGroupResource: templates, ConfigReferent: addonv1alpha1.ConfigReferent{Name: "hello"},
	}
}

// content returns a template with one ConfigMap of that name.
func content(t *testing.T, hash, name string) config.Content {
	t.Helper()
	raw := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"` + name + `"}}`
	spec := addonv1alpha1.AddOnTemplateSpec{AddonName: "hello"}
	spec.AgentSpec.Workload.Manifests = []workv1.Manifest{{}}
	spec.AgentSpec.Workload.Manifests[0].Raw = []byte(raw)
	out, err := json.Marshal(spec)
	require.NoError(t, err)
	return config.Content{Hash: hash, Spec: string(out)}
}

// given returns an instance that should get the template with a hash.
func given(hash string) *addonv1alpha1.ManagedClusterAddOn {
	at := hello()
	return &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello"},
		Status: addonv1alpha1.ManagedClusterAddOnStatus{ConfigReferences: []addonv1alpha1.ConfigReference{{
			ConfigGroupResource: at.ConfigGroupResource,
			DesiredConfig:       &addonv1alpha1.ConfigSpecHash{ConfigReferent: at.ConfigReferent, SpecHash: hash},
		}}},
	}
}

// gifts are what users assign to every cluster; nil stands for a deleted add-on.
type gifts map[addonv1alpha1.AddOnConfig]bool

func (g gifts) Gives(_ context.Context, _, _ string, c addonv1alpha1.AddOnConfig) (given, known bool, err error) {
	return g[c], g != nil, nil
}

func newTest(s said) *family {
	all := gifts{hello(): true}
	for _, name := range []string{"x", "a", "b"} {
		all[settings(name)] = true
	}
	f := newFamily(nil, clocktesting.NewFakePassiveClock(time.Unix(0, 0)), s, all)
	f.setListed("hello", true)
	return f
}

// rendered returns the name of what an instance gets: "-" if it keeps what it has, or why it
// gets nothing.
func rendered(t *testing.T, f *family, a *addonv1alpha1.ManagedClusterAddOn) string {
	t.Helper()
	addOn, ok := f.addOnOf(a)
	if !ok {
		return "-"
	}
	objects, err := addOn.Manifests(
		t.Context(),
		addonkit.Instance{AddOn: a, Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}},
	)
	if err != nil {
		return err.Error()
	}
	return objects[0].(metav1.Object).GetName()
}

func TestContentIsPinnedToItsHash(t *testing.T) {
	s := said{hello(): content(t, "1", "one")}
	f := newTest(s)
	require.Equal(t, "one", rendered(t, f, given("1")))
	require.Equal(t, "-", rendered(t, f, given("2")), "the object does not have that content yet")
	s[hello()] = content(t, "2", "two")
	require.Equal(
		t, []reconcile.Key{{Namespace: "c1", Name: "hello"}}, f.takeWaiting(hello()), "the waiting instance is requeued",
	)
	require.Empty(t, f.takeWaiting(hello()))
	require.Equal(t, "two", rendered(t, f, given("2")))
	require.Equal(t, "one", rendered(t, f, given("1")), "an instance that waits for its turn keeps what it has")
	require.Empty(t, f.waiting)
}

func TestWhatDoesNotExistIsSaid(t *testing.T) {
	f := newTest(said{})
	require.Equal(t, "AddOnTemplate hello: does not exist; create it, or name another one", rendered(t, f, given("")))
	a := given("1")
	a.Status.ConfigReferences = append(a.Status.ConfigReferences, addonv1alpha1.ConfigReference{
		ConfigGroupResource: supported[0],
		DesiredConfig: &addonv1alpha1.ConfigSpecHash{
			ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "ns", Name: "x"},
		},
	})
	f.contents = said{hello(): content(t, "1", "one")}
	require.Equal(t, "AddOnDeploymentConfig ns/x: does not exist; create it, or name another one", rendered(t, f, a))
}

// TestWhatWasDeletedIsSaid: cached content of a deleted object is used, but after a restart
// there is none.
func TestWhatWasDeletedIsSaid(t *testing.T) {
	s := said{hello(): content(t, "1", "one")}
	f := newTest(s)
	require.Equal(t, "one", rendered(t, f, given("1")))
	delete(s, hello())
	require.Equal(t, "one", rendered(t, f, given("1")))
	f = newTest(s)
	require.Equal(
		t,
		"AddOnTemplate hello: no longer exists, and what runs is left as it is; create it again, or name another one",
		rendered(t, f, given("1")),
	)
	s[hello()] = content(t, "1", "one")
	require.Equal(
		t, []reconcile.Key{{Namespace: "c1", Name: "hello"}}, f.takeWaiting(hello()),
		"the waiting instance is requeued when the object is back",
	)
	require.Equal(t, "one", rendered(t, f, given("1")))
}

func TestWhichInstancesAreServed(t *testing.T) {
	f := newTest(said{hello(): content(t, "1", "one")})
	require.False(t, f.setListed("hello", true), "no news")
	a := given("1")
	a.Status.ConfigReferences = nil
	require.Equal(t, "-", rendered(t, f, a), "nothing is assigned yet")
	require.True(t, f.setListed("hello", false))
	require.Equal(t, "-", rendered(t, f, given("1")), "its add-on is not defined by templates")
	a = given("1")
	a.Status.SupportedConfigs = supported
	require.Equal(t, "one", rendered(t, f, a), "it was, and is served until it is gone")
	require.True(
		t,
		usesTemplates(&addonv1alpha1.ClusterManagementAddOn{
			Spec: addonv1alpha1.ClusterManagementAddOnSpec{
				SupportedConfigs: []addonv1alpha1.ConfigMeta{{ConfigGroupResource: templates}},
			},
		}),
	)
	require.False(t, usesTemplates(&addonv1alpha1.ClusterManagementAddOn{}))
	require.False(t, usesTemplates(nil))
}

func TestWhatIsDeletedHasWhatThereIsOrWas(t *testing.T) {
	s := said{hello(): content(t, "1", "one")}
	f := newTest(s)
	end := func(hash string) *addonv1alpha1.ManagedClusterAddOn {
		a := given(hash)
		a.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		return a
	}
	require.Equal(t, "one", rendered(t, f, end("2")), "with an unknown hash")
	delete(s, hello())
	require.Equal(t, "one", rendered(t, f, end("")), "of a template that was deleted first")
	require.Equal(t, "AddOnTemplate hello: does not exist", rendered(t, newTest(said{}), end("1")), "after a restart")
	a := end("1")
	a.Status.ConfigReferences = nil
	require.Equal(t, "ManagedClusterAddOn c1/hello: status.configReferences: names no AddOnTemplate", rendered(t, f, a))
}

func TestContentsAreForgottenBeforeTheyAreTooMany(t *testing.T) {
	f := newTest(said{})
	for i := range maxKnown + 1 {
		f.hold(i, i)
	}
	require.Len(t, f.known, 1)
}

func TestWhatIsKeptOfACluster(t *testing.T) {
	c := &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", UID: "u", ResourceVersion: "7", Labels: map[string]string{"a": "b"},
			Annotations: map[string]string{"x": "y", clusterv1.AnnotationImageRegistries: "{}"}},
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true, LeaseDurationSeconds: 60},
		Status: clusterv1.ManagedClusterStatus{Conditions: []metav1.Condition{
			{
				Type: clusterv1.ConditionJoined,
			}, {
				Type:               clusterv1.ConditionAvailable,
				Status:             metav1.ConditionUnknown,
				Message:            "m",
				LastTransitionTime: metav1.Now(),
			},
		}},
	}
	slim(c)
	require.Equal(t, &clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{
			Name: "c1", UID: "u", Annotations: map[string]string{clusterv1.AnnotationImageRegistries: "{}"},
		},
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
		Status: clusterv1.ManagedClusterStatus{
			Conditions: []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionUnknown}},
		},
	}, c)
}

// TestAnAgentReadsNothingByWhatItWritesIntoItsStatus: what a status names is used only if
// users assigned it to the instance, whatever its hash.
func TestAnAgentReadsNothingByWhatItWritesIntoItsStatus(t *testing.T) {
	foreign := settings("foreign")
	s := said{
		hello(): content(t, "1", "one"),
		foreign: config.Content{Hash: "f", Spec: `{"customizedVariables":[{"name":"V","value":"secret"}]}`},
	}
	named := func(hash string) *addonv1alpha1.ManagedClusterAddOn {
		a := given("1")
		a.Status.ConfigReferences = append(a.Status.ConfigReferences, reference(foreign, hash))
		return a
	}
	f := newTest(s)
	all := f.giver.(gifts)
	for _, hash := range []string{"f", "made-up", ""} {
		require.Equal(t, "-", rendered(t, f, named(hash)), "what runs stays")
		require.Equal(t, "-", rendered(t, f, named(hash)), "again")
	}
	require.Equal(
		t, []reconcile.Key{{Namespace: "c1", Name: "hello"}}, f.takeWaiting(ofAddOn("hello")),
		"it is requeued when users assign something else",
	)

	own := named("f")
	own.Spec.Configs = []addonv1alpha1.AddOnConfig{foreign}
	require.Equal(t, "one", rendered(t, f, own), "the instance names it itself")
	require.Equal(t, "-", rendered(t, f, named("f")), "other instances do not get it")
	all[foreign] = true
	require.Equal(t, "one", rendered(t, f, named("f")))
	delete(all, foreign)

	// Of an allowed object only its own content is used, even with the known hash of another
	// one.
	all[settings("a")] = true
	s[settings("a")] = config.Content{Hash: "a1", Spec: `{}`}
	swapped := given("1")
	swapped.Status.ConfigReferences = append(swapped.Status.ConfigReferences, reference(settings("a"), "f"))
	require.Equal(t, "-", rendered(t, f, swapped))

	// An instance that is being deleted has its templates, and the rest while its add-on is
	// known.
	going := named("f")
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	require.Contains(t, rendered(t, f, going), "AddOnDeploymentConfig ns/foreign: is not assigned to the instance")
	delete(all, hello())
	going.Status.ConfigReferences = going.Status.ConfigReferences[:1]
	require.Equal(t, "one", rendered(t, f, going))
	f.giver = gifts(nil)
	require.Equal(t, "one", rendered(t, f, going), "its add-on was deleted first")
	require.Equal(t, "-", rendered(t, f, given("1")), "an instance that is not being deleted waits")
}

// TestTheLastGoodRenderingEndsAnAddOn: the last applied contents are used if the current ones
// cannot be rendered or are gone.
func TestTheLastGoodRenderingEndsAnAddOn(t *testing.T) {
	at := settings("a")
	going := func(hash string) *addonv1alpha1.ManagedClusterAddOn {
		a := given("1")
		a.Status.ConfigReferences = append(a.Status.ConfigReferences, reference(at, hash))
		for i := range a.Status.ConfigReferences {
			applied := *a.Status.ConfigReferences[i].DesiredConfig
			a.Status.ConfigReferences[i].LastAppliedConfig = &applied
		}
		return a
	}
	s := said{hello(): content(t, "1", "one"), at: config.Content{Hash: "good", Spec: `{}`}}
	f := newTest(s)
	require.Equal(t, "one", rendered(t, f, going("good")))
	s[at] = config.Content{Hash: "bad", Spec: `{"resourceRequirements":[{"containerID":"none"}]}`}
	stuck := going("good")
	stuck.Status.ConfigReferences[1] = reference(at, "bad")
	stuck.Status.ConfigReferences[1].LastAppliedConfig = &addonv1alpha1.ConfigSpecHash{
		ConfigReferent: at.ConfigReferent, SpecHash: "good",
	}
	require.Contains(
		t, rendered(t, f, stuck), "spec.resourceRequirements[0].containerID",
		"an instance that is not being deleted reports the error",
	)
	stuck.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	require.Equal(t, "one", rendered(t, f, stuck))
	delete(s, at)
	delete(f.known, key{at, "bad"})
	delete(f.known, at)
	require.Equal(t, "one", rendered(t, f, stuck), "a deleted object does not block it either")
	require.Contains(
		t, rendered(t, newTest(s), stuck), "AddOnDeploymentConfig ns/a: does not exist", "after a restart nothing is cached",
	)
}
