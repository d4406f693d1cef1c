// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/config"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/selection"
	"github.com/kubectl-ocm/kubectl-ocm/internal/rollout"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var start = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// fleet is a hub in memory: what Decide writes in one pass is what it sees in the next.
type fleet struct {
	t     *testing.T
	state State
	// content is the content of every configuration by name.
	content map[string]string
	// sent are the events of all passes.
	sent []string
}

var (
	adcKind = addonv1alpha1.ConfigGroupResource{
		Group: addonv1alpha1.GroupName, Resource: addonv1alpha1.ResourceDeploymentConfig,
	}
	foreignKind = addonv1alpha1.ConfigGroupResource{Group: "example.com", Resource: "exampleconfigs"}
)

func adc(name string) addonv1alpha1.AddOnConfig {
	return addonv1alpha1.AddOnConfig{
		ConfigGroupResource: adcKind, ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "ns", Name: name},
	}
}

// newFleet returns a fleet with a managed add-on whose default is d, with one instance per
// cluster of each placement. A placement is "name: c1 c2 | c3", with "|" between its groups,
// and the name of a group before "=".
func newFleet(t *testing.T, strategy string, placements ...string) *fleet {
	t.Helper()
	a := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "metrics", Generation: 2}}
	d := adc("d")
	a.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{ConfigGroupResource: adcKind, DefaultConfig: &d.ConfigReferent}}
	a.Spec.InstallStrategy.Type = addonv1alpha1.InstallStrategyPlacements
	f := &fleet{
		t: t,
		state: State{
			AddOn: a, Clusters: map[string]selection.Cluster{}, Contents: map[addonv1alpha1.AddOnConfig]config.Content{},
			Now: start,
		},
	}
	f.write("d", "one")
	parsed := clusterv1alpha1.RolloutStrategy{}
	if strategy != "" {
		require.NoError(t, json.Unmarshal([]byte(strategy), &parsed))
	}
	by, err := rollout.Parse(parsed)
	require.NoError(t, err)
	for _, text := range placements {
		name, rest, _ := strings.Cut(text, ":")
		p := selection.Placement{Found: true, Decided: true, Strategy: by}
		p.Namespace, p.Name = "default", name
		for i, group := range strings.Split(rest, "|") {
			g := rollout.Group{Index: i}
			if label, members, ok := strings.Cut(group, "="); ok {
				g.Name, group = strings.TrimSpace(label), members
			}
			g.Clusters = strings.Fields(group)
			p.Groups, p.Clusters = append(p.Groups, g), append(p.Clusters, g.Clusters...)
			for _, c := range g.Clusters {
				if _, known := f.state.Clusters[c]; !known {
					f.state.Clusters[c] = selection.Cluster{Exists: true}
					f.install(c)
				}
			}
		}
		f.state.Placements = append(f.state.Placements, p)
	}
	return f
}

func (f *fleet) install(cluster string) {
	f.state.Instances = append(f.state.Instances, Instance{AddOn: instance.AddOn{
		Cluster: cluster, Name: "metrics", UID: types.UID("a-" + cluster), Version: "1", Generation: 1,
		Supported: []addonv1alpha1.ConfigGroupResource{adcKind},
	}})
}

// write changes the content of a configuration; an empty hash deletes it.
func (f *fleet) write(name, hash string) {
	if hash == "" {
		delete(f.state.Contents, adc(name))
		return
	}
	f.state.Contents[adc(name)] = config.Content{Hash: hash, Generation: int64(len(hash))}
}

func (f *fleet) of(cluster string) *Instance {
	for i := range f.state.Instances {
		if f.state.Instances[i].Cluster == cluster {
			return &f.state.Instances[i]
		}
	}
	require.FailNow(f.t, "no instance", cluster)
	return nil
}

// pass decides until there is nothing left to write, as the loop does, and returns after how
// long to run again.
func (f *fleet) pass() time.Duration {
	f.t.Helper()
	for range 20 {
		plan := Decide(f.state)
		after, ok := plan.Object.(*addonv1alpha1.ClusterManagementAddOn)
		require.True(f.t, ok)
		same := len(plan.Writes) == 0 && string(marshal(f.t, after.Status)) == string(marshal(f.t, f.state.AddOn.Status))
		f.state.AddOn = after
		for _, e := range plan.Events {
			f.sent = append(f.sent, e.Type+" "+e.Reason+": "+e.Message)
		}
		for _, p := range reconcile.Of[reconcile.Patch](plan.Writes) {
			f.patch(p.Namespace, p.Body)
		}
		if same {
			return plan.RequeueAfter
		}
	}
	require.FailNow(f.t, "it never settles")
	return 0
}

// patch merges a patch in its wire form into the status of an instance.
func (f *fleet) patch(cluster string, body map[string]any) {
	f.t.Helper()
	status := addonv1alpha1.ManagedClusterAddOn{}
	one := f.of(cluster)
	status.Status.ConfigReferences, status.Status.Conditions = one.References, one.Conditions
	patch := addonv1alpha1.ManagedClusterAddOn{}
	require.NoError(f.t, json.Unmarshal(marshal(f.t, body), &patch))
	changes, ok := body["status"].(map[string]any)
	require.True(f.t, ok)
	if _, ok := changes["configReferences"]; ok {
		one.References = patch.Status.ConfigReferences
	}
	if _, ok := changes["conditions"]; ok {
		one.Conditions = patch.Status.Conditions
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}

// deploy does what the add-on's controller and the agents of these clusters do: it creates
// works for the given configurations, with the given readiness.
func (f *fleet) deploy(ready bool, clusters ...string) {
	for _, c := range clusters {
		one := f.of(c)
		mark, ok := addonkit.Mark(one.References)
		apimeta.SetStatusCondition(&one.Conditions, metav1.Condition{
			Type:               addonv1alpha1.ConditionManifestApplied,
			Status:             metav1.ConditionTrue,
			Reason:             "AddonManifestApplied",
			LastTransitionTime: metav1.NewTime(f.state.Now),
		})
		one.Works = nil
		if ok {
			one.Works = []instance.Work{{Mark: mark, Readable: true, Ready: ready}}
		}
	}
}

// told describes the instances: "c1=hash" for the first reference, "*" if it is applied, "?"
// if the cluster waits for its turn.
func (f *fleet) told() string {
	var out []string
	for _, one := range f.state.Instances {
		line := one.Cluster + "="
		for i, r := range one.References {
			if i > 0 {
				line += ","
			}
			line += r.DesiredConfig.SpecHash
		}
		if len(one.References) > 0 && config.Applied(one.References, nil) {
			line += "*"
		}
		if apimeta.IsStatusConditionFalse(one.Conditions, addonv1alpha1.ConditionConfigured) {
			line += "?"
		}
		out = append(out, line)
	}
	return strings.Join(out, " ")
}

// condition returns "Status Reason: message" of an instance.
func (f *fleet) condition(cluster, kind string) string {
	return conditionText(f.of(cluster).Conditions, kind)
}

// progression describes that of the i-th placement.
func (f *fleet) progression(i int) string {
	return conditionText(f.state.AddOn.Status.InstallProgressions[i].Conditions, addonv1alpha1.ConditionProgressing)
}

func conditionText(list []metav1.Condition, kind string) string {
	c := apimeta.FindStatusCondition(list, kind)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}
