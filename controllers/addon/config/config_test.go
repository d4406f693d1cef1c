// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// ref parses "resource.group/namespace/name".
func ref(text string) addonv1alpha1.AddOnConfig {
	parts := strings.Split(text, "/")
	resource, group, _ := strings.Cut(parts[0], ".")
	return addonv1alpha1.AddOnConfig{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: group, Resource: resource},
		ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: parts[1], Name: parts[2]},
	}
}

func refs(texts ...string) []addonv1alpha1.AddOnConfig {
	var out []addonv1alpha1.AddOnConfig
	for _, t := range texts {
		out = append(out, ref(t))
	}
	return out
}

// adc and foreign are configurations of a kind that the hub knows and of another.
func adc(name string) string {
	return "addondeploymentconfigs.addon.open-cluster-management.io/ns/" + name
}

func foreign(name string) string { return "exampleconfigs.example.com/ns/" + name }

func text(c addonv1alpha1.AddOnConfig) string {
	kind := c.Resource
	if c.Group != "" {
		kind += "." + c.Group
	}
	return kind + "/" + c.Namespace + "/" + c.Name
}

func addOn(defaults ...string) *addonv1alpha1.ClusterManagementAddOn {
	out := &addonv1alpha1.ClusterManagementAddOn{}
	for _, d := range refs(defaults...) {
		out.Spec.SupportedConfigs = append(out.Spec.SupportedConfigs, addonv1alpha1.ConfigMeta{
			ConfigGroupResource: d.ConfigGroupResource,
			DefaultConfig:       &d.ConfigReferent,
		})
	}
	return out
}

// contents returns a Lookup that gives each name the hash "hash of name" and generation 7.
func contents(names ...string) Lookup {
	return func(c addonv1alpha1.AddOnConfig) (Content, bool) {
		for _, n := range names {
			if isKnown(c.ConfigGroupResource) && c.Name == n {
				return Content{Hash: "hash of " + n, Generation: 7}, true
			}
		}
		return Content{}, false
	}
}

func TestEffective(t *testing.T) {
	cases := map[string]struct {
		own, placement, defaults, want []string
	}{
		"only defaults": {
			nil,
			nil,
			[]string{adc("d"), foreign("d")},
			[]string{adc("d"), foreign("d")},
		},
		"a placement replaces the default": {
			nil,
			[]string{adc("p")},
			[]string{adc("d"), foreign("d")},
			[]string{adc("p"), foreign("d")},
		},
		"a cluster replaces both": {
			[]string{adc("c")},
			[]string{adc("p")},
			[]string{adc("d")},
			[]string{adc("c")},
		},
		"the whole list of a kind is replaced": {
			[]string{adc("c")},
			[]string{adc("p1"), adc("p2")},
			[]string{foreign("d")},
			[]string{adc("c"), foreign("d")},
		},
		"several of a kind keep their order": {
			nil,
			[]string{adc("z"), foreign("m"), adc("a"), foreign("b")},
			nil,
			[]string{adc("z"), adc("a"), foreign("m"), foreign("b")},
		},
		"what is named twice counts once": {
			nil,
			[]string{adc("z"), adc("a"), adc("z")},
			nil,
			[]string{adc("z"), adc("a")},
		},
		"the core group comes first": {
			[]string{adc("c"), "configmaps/ns/c"},
			nil,
			nil,
			[]string{"configmaps/ns/c", adc("c")},
		},
		"a kind of the cluster alone is listed": {
			[]string{foreign("c")},
			nil,
			[]string{adc("d")},
			[]string{adc("d"), foreign("c")},
		},
		"no default is none": {
			nil,
			[]string{adc(addonv1alpha1.ReservedNoDefault)},
			[]string{adc("")},
			nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range Effective(refs(tc.own...), refs(tc.placement...), Defaults(addOn(tc.defaults...).Spec)) {
				got = append(got, text(c))
			}
			require.Empty(t, cmp.Diff(tc.want, got))
		})
	}
}

// said parses references of a cluster from "config=desired|applied".
func said(texts ...string) []addonv1alpha1.ConfigReference {
	var out []addonv1alpha1.ConfigReference
	for _, t := range texts {
		at, hashes, _ := strings.Cut(t, "=")
		desired, applied, done := strings.Cut(hashes, "|")
		c := ref(at)
		r := addonv1alpha1.ConfigReference{ConfigGroupResource: c.ConfigGroupResource, ConfigReferent: c.ConfigReferent, LastObservedGeneration: 3,
			DesiredConfig: &addonv1alpha1.ConfigSpecHash{ConfigReferent: c.ConfigReferent, SpecHash: desired}}
		if done {
			r.LastAppliedConfig = &addonv1alpha1.ConfigSpecHash{ConfigReferent: c.ConfigReferent, SpecHash: applied}
		}
		out = append(out, r)
	}
	return out
}

func shown(list []addonv1alpha1.ConfigReference) []string {
	var out []string
	for _, r := range list {
		line := text(
			addonv1alpha1.AddOnConfig{ConfigGroupResource: r.ConfigGroupResource, ConfigReferent: Referent(r)},
		) + "=" + hashOf(r.DesiredConfig)
		if r.LastAppliedConfig != nil {
			line += "|" + r.LastAppliedConfig.SpecHash
		}
		out = append(out, line)
	}
	return out
}

func TestByCluster(t *testing.T) {
	cases := map[string]struct {
		effective, own, have []string
		generations          []int64
		want                 []string
	}{
		"known content": {[]string{adc("a")}, nil, nil, []int64{7}, []string{adc("a") + "=hash of a"}},
		"a default that is not there": {
			[]string{adc("x")},
			nil,
			[]string{adc("x") + "=old"},
			[]int64{0},
			[]string{adc("x") + "="},
		},
		"a cluster's own that is not there": {
			[]string{adc("x")},
			[]string{adc("x")},
			nil,
			[]int64{0},
			[]string{adc("x") + "="},
		},
		"a cluster's own that is gone": {
			[]string{adc("x")},
			[]string{adc("x")},
			[]string{adc("x") + "=old|old"},
			[]int64{3},
			[]string{adc("x") + "=old|old"},
		},
		"another kind, by the add-on's status": {
			[]string{foreign("a")},
			nil,
			nil,
			[]int64{0},
			[]string{foreign("a") + "=shared"},
		},
		"another kind of the cluster": {
			[]string{foreign("a")},
			[]string{foreign("a")},
			[]string{foreign("a") + "=theirs"},
			[]int64{3},
			[]string{foreign("a") + "=theirs"},
		},
		"what was applied of the same is kept": {
			[]string{adc("a")},
			nil,
			[]string{adc("a") + "=old|old"},
			[]int64{7},
			[]string{adc("a") + "=hash of a|old"},
		},
		"what was applied of another is dropped": {
			[]string{adc("a")},
			nil,
			[]string{adc("b") + "=old|old"},
			[]int64{7},
			[]string{adc("a") + "=hash of a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			have := said(tc.have...)
			want := ByCluster(
				refs(tc.effective...), refs(tc.own...), have, contents("a", "b"), Hashes{ref(foreign("a")): "shared"},
			)
			got := References(have, want)
			require.Empty(t, cmp.Diff(tc.want, shown(got)))
			for i, g := range got {
				require.Equal(t, tc.generations[i], g.LastObservedGeneration)
				require.Equal(t, g.DesiredConfig.ConfigReferent, g.ConfigReferent, "the older form is equivalent")
			}
			require.True(t, Given(got, want))
		})
	}
}

func TestGivenAndApplied(t *testing.T) {
	want := ByCluster(refs(adc("a"), adc("b")), nil, nil, contents("a", "b"), nil)
	a, b := adc("a")+"=hash of a", adc("b")+"=hash of b"
	require.True(t, Given(said(a, b), want))
	for name, have := range map[string][]addonv1alpha1.ConfigReference{
		"fewer":          said(a),
		"more":           said(a, b, foreign("x")),
		"another order":  said(b, a),
		"another hash":   said(adc("a")+"=x", b),
		"another object": said(adc("c")+"=hash of a", b),
		"the oldest form": {
			{ConfigGroupResource: want[0].ConfigGroupResource, ConfigReferent: want[0].ConfigReferent},
			said(b)[0],
		},
	} {
		require.False(t, Given(have, want), name)
	}
	require.True(t, Applied(nil, nil), "nothing is desired")
	require.True(t, Applied(said(a+"|hash of a"), nil))
	require.False(t, Applied(said(a+"|older"), nil))
	require.False(t, Applied(said(a), nil))
	theirs := func(k addonv1alpha1.ConfigGroupResource) bool { return !Overridden(refs(adc("a")), k) }
	require.True(t, Applied(said(a+"|older", foreign("f")+"=1|1"), theirs), "what the cluster names itself does not count")
	require.False(t, Applied(said(a+"|older", foreign("f")+"=1|0"), theirs))
}

func TestMark(t *testing.T) {
	got, ok := addonkit.Mark(said("configmaps//c=1", adc("a")+"=2"))
	require.True(t, ok)
	require.Equal(t, `{"addondeploymentconfigs.addon.open-cluster-management.io/ns/a":"2","configmaps//c":"1"}`, got)
	read, ok := ReadMark(` {"configmaps//c":"1", "addondeploymentconfigs.addon.open-cluster-management.io/ns/a":"2"}`)
	require.True(t, ok)
	require.Equal(t, got, read)
	_, ok = addonkit.Mark(said(adc("a") + "="))
	require.False(t, ok, "a hash is missing")
	for _, none := range []string{"", "{}"} {
		read, ok = ReadMark(none)
		require.True(t, ok)
		require.Empty(t, read)
	}
	for _, bad := range []string{"no", `["a"]`, `{"a":1}`, `{"a":"` + strings.Repeat("x", maxMark) + `"}`} {
		_, ok = ReadMark(bad)
		require.False(t, ok)
	}
}

func TestDefaultReferences(t *testing.T) {
	a := addOn(adc("a"), foreign("f"), adc(addonv1alpha1.ReservedNoDefault))
	a.Spec.SupportedConfigs = append(a.Spec.SupportedConfigs, addonv1alpha1.ConfigMeta{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Resource: "configmaps"},
	})
	a.Status.DefaultConfigReferences = []addonv1alpha1.DefaultConfigReference{
		{
			ConfigGroupResource: ref(foreign("f")).ConfigGroupResource,
			DesiredConfig: &addonv1alpha1.ConfigSpecHash{
				ConfigReferent: ref(foreign("f")).ConfigReferent, SpecHash: "theirs",
			},
		},
		{
			ConfigGroupResource: ref(adc("a")).ConfigGroupResource,
			DesiredConfig:       &addonv1alpha1.ConfigSpecHash{ConfigReferent: ref(adc("a")).ConfigReferent, SpecHash: "old"},
		},
	}
	got := func(known Lookup) string {
		raw, err := json.Marshal(DefaultReferences(a, known))
		require.NoError(t, err)
		return string(raw)
	}
	const first = `[{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs","desiredConfig":{"namespace":"ns","name":"a"`
	const second = `}},{"group":"example.com","resource":"exampleconfigs","desiredConfig":{"namespace":"ns","name":"f","specHash":"theirs"}}]`
	require.Equal(t, first+`,"specHash":"hash of a"`+second, got(contents("a")))
	require.Equal(t, first+second, got(contents()), "a deleted object has no hash")
}

func TestProgressionCarriesOnlyWhatWasThereBefore(t *testing.T) {
	a := addOn(adc("a"), foreign("f"))
	placement := addonv1alpha1.PlacementStrategy{
		PlacementRef: addonv1alpha1.PlacementRef{Namespace: "ns", Name: "p"}, Configs: refs(foreign("g")),
	}
	p := Progression(a, placement, contents("a"))
	require.Len(t, p.ConfigReferences, 2)
	require.Equal(t, "hash of a", p.ConfigReferences[0].DesiredConfig.SpecHash)
	require.Empty(t, p.ConfigReferences[1].DesiredConfig.SpecHash, "its controller has set it")

	p.ConfigReferences[1].DesiredConfig.SpecHash = "theirs"
	Complete(&p)
	p.Conditions = append(p.Conditions, conditionOf("Completed"))
	a.Status.InstallProgressions = []addonv1alpha1.InstallProgression{
		{PlacementRef: addonv1alpha1.PlacementRef{Namespace: "ns", Name: "other"}}, p,
	}
	same := Progression(a, placement, contents("a"))
	require.Empty(t, cmp.Diff(p, same))
	require.Equal(t, Hashes{ref(adc("a")): "hash of a", ref(foreign("g")): "theirs"}, Shared(nil, same))

	placement.Configs = refs(foreign("g"), foreign("h"))
	fresh := Progression(a, placement, contents("a"))
	require.Len(t, fresh.ConfigReferences, 3)
	require.Empty(t, fresh.Conditions)
	for _, r := range fresh.ConfigReferences {
		require.Nil(t, r.LastAppliedConfig)
		require.Nil(t, r.LastKnownGoodConfig)
	}
	require.Empty(t, fresh.ConfigReferences[1].DesiredConfig.SpecHash)

	placement.Configs = nil
	a.Spec.SupportedConfigs = addOn(adc("a")).Spec.SupportedConfigs
	fewer := Progression(a, placement, contents("a"))
	require.Len(t, fewer.Conditions, 1, "all remaining configurations were named before")
	require.NotNil(t, fewer.ConfigReferences[0].LastAppliedConfig)
}

func conditionOf(reason string) metav1.Condition {
	return metav1.Condition{Type: addonv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: reason}
}
