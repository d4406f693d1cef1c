// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	addonv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1beta1"
	authenticationv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1alpha1"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

// scheme holds every kind.
func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1.AddToScheme, clusterv1alpha1.AddToScheme, clusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme,
		workv1.AddToScheme, workv1alpha1.AddToScheme, addonv1alpha1.AddToScheme, addonv1beta1.AddToScheme,
		operatorv1.AddToScheme, authenticationv1alpha1.AddToScheme, authenticationv1beta1.AddToScheme, permissionv1alpha1.AddToScheme,
	} {
		require.NoError(t, add(s))
	}
	return s
}

// kinds are the kinds of all definitions in all their versions.
func kinds(t *testing.T) []schema.GroupVersionKind {
	t.Helper()
	var all []schema.GroupVersionKind
	for _, definition := range definitions(t) {
		for _, version := range definition.Spec.Versions {
			all = append(all, schema.GroupVersionKind{
				Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind,
			})
		}
	}
	slices.SortFunc(all, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return all
}

func TestEveryServedVersionHasItsGoType(t *testing.T) {
	s := scheme(t)
	own := 0
	for gvk := range s.AllKnownTypes() {
		if strings.HasSuffix(gvk.Group, ".open-cluster-management.io") && isOwn(gvk) {
			own++
		}
	}
	require.Equal(t, 2*len(kinds(t)), own, "kinds and lists in the scheme")
	for _, gvk := range kinds(t) {
		object, err := s.New(gvk)
		require.NoError(t, err)
		require.Implements(t, (*metav1.Object)(nil), object, gvk)
		list, err := s.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		require.NoError(t, err)
		require.Implements(t, (*metav1.ListInterface)(nil), list, gvk)
		items := reflect.ValueOf(list).Elem().FieldByName("Items")
		require.Equal(t, reflect.TypeOf(object).Elem(), items.Type().Elem(), gvk)
		require.Equal(t, schema.GroupResource{Group: gvk.Group, Resource: "r"}, qualified(t, gvk.GroupVersion()))
	}
}

// isOwn leaves out the kinds that every group has, such as WatchEvent.
func isOwn(gvk schema.GroupVersionKind) bool {
	return !slices.Contains([]string{
		"WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions",
	}, gvk.Kind)
}

// qualified calls the function Resource of the package of a version.
func qualified(t *testing.T, gv schema.GroupVersion) schema.GroupResource {
	t.Helper()
	functions := map[schema.GroupVersion]func(string) schema.GroupResource{
		clusterv1.GroupVersion: clusterv1.Resource, clusterv1alpha1.GroupVersion: clusterv1alpha1.Resource,
		clusterv1beta1.GroupVersion: clusterv1beta1.Resource, clusterv1beta2.GroupVersion: clusterv1beta2.Resource,
		workv1.GroupVersion: workv1.Resource, workv1alpha1.GroupVersion: workv1alpha1.Resource,
		addonv1alpha1.GroupVersion: addonv1alpha1.Resource, addonv1beta1.GroupVersion: addonv1beta1.Resource,
		operatorv1.GroupVersion: operatorv1.Resource, authenticationv1alpha1.GroupVersion: authenticationv1alpha1.Resource,
		authenticationv1beta1.GroupVersion: authenticationv1beta1.Resource, permissionv1alpha1.GroupVersion: permissionv1alpha1.Resource,
	}
	require.Contains(t, functions, gv)
	return functions[gv]("r")
}

// sample makes an object in which every path of the facts has a value.
func sample(facts Facts, gvk schema.GroupVersionKind) map[string]any {
	object := value(facts, gvk.Version, "").(map[string]any)
	object["apiVersion"], object["kind"] = gvk.GroupVersion().String(), gvk.Kind
	object["metadata"] = map[string]any{"name": "n"}
	return object
}

// value makes the value of a path.
func value(facts Facts, version, path string) any {
	fact := facts[Place{version, path}]
	if path == "" {
		fact = facts[Place{version, "."}]
	}
	switch {
	case strings.Contains(fact.Attributes, "x-kubernetes-embedded-resource=true"):
		return map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "n"}, "data": map[string]any{"k": "v"},
		}
	case fact.Type == "object":
		return fields(facts, version, path)
	case fact.Type == "array":
		return []any{value(facts, version, path+"[]")}
	case fact.Type == "boolean":
		return true
	case fact.Type == "integer":
		return int64(7)
	case strings.Contains(fact.Attributes, `format="date-time"`):
		return "2026-11-21T04:00:00Z"
	case strings.Contains(fact.Attributes, `format="byte"`):
		return "cGVt"
	case strings.HasSuffix(path, "minSuccessTime"), strings.HasSuffix(path, "Interval"), strings.HasSuffix(path, "GracePeriod"),
		strings.HasSuffix(path, "validity"):
		return "1m0s"
	case fact.Type == "any" && strings.HasSuffix(path, "{}"):
		return "10m" // A quantity.
	default:
		return "7%" // Also fits a number or a share.
	}
}

// fields makes the value of an object.
func fields(facts Facts, version, path string) map[string]any {
	object := map[string]any{}
	for place := range facts {
		if place.Version != version || !strings.HasPrefix(place.Path, path) {
			continue
		}
		switch rest := strings.TrimPrefix(place.Path, path); {
		case rest == "{}":
			object["k"] = value(facts, version, place.Path)
		case strings.HasPrefix(rest, ".") && len(rest) > 1 && !strings.ContainsAny(rest[1:], ".[{"):
			object[rest[1:]] = value(facts, version, place.Path)
		}
	}
	return object
}

func TestGoTypesKeepEveryFieldOfTheFacts(t *testing.T) {
	wanted, err := ReadFacts("testdata/crds")
	require.NoError(t, err)
	s := scheme(t)
	for name, definition := range definitions(t) {
		for _, version := range definition.Spec.Versions {
			gvk := schema.GroupVersionKind{Group: definition.Spec.Group, Version: version.Name, Kind: definition.Spec.Names.Kind}
			if servedBeside[name] == version.Name {
				continue // Same type as the stored version, shown above.
			}
			t.Run(gvk.String(), func(t *testing.T) {
				full := sample(wanted[name], gvk)
				raw, err := json.Marshal(full)
				require.NoError(t, err)

				object, err := s.New(gvk)
				require.NoError(t, err)
				decoder := json.NewDecoder(bytes.NewReader(raw))
				decoder.DisallowUnknownFields()
				require.NoError(t, decoder.Decode(object))
				again, err := json.Marshal(object)
				require.NoError(t, err)
				require.JSONEq(t, string(raw), string(again))

				other, err := s.New(gvk)
				require.NoError(t, err)
				require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(full, other, true))
				require.True(t, equality.Semantic.DeepEqual(object, other), cmp.Diff(object, other))
				converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(other)
				require.NoError(t, err)
				again, err = json.Marshal(converted)
				require.NoError(t, err)
				require.JSONEq(t, string(raw), string(again))
			})
		}
	}
}

func TestRandomObjectsSurviveJSONAndCopying(t *testing.T) {
	s := scheme(t)
	random := filler()
	for _, gvk := range kinds(t) {
		t.Run(gvk.String(), func(t *testing.T) {
			for range 100 {
				object, err := s.New(gvk)
				require.NoError(t, err)
				random.Fill(object)
				object.GetObjectKind().SetGroupVersionKind(gvk)
				copied := object.DeepCopyObject()
				require.True(t, equality.Semantic.DeepEqual(object, copied), cmp.Diff(object, copied))

				raw, err := json.Marshal(object)
				require.NoError(t, err)
				back, err := s.New(gvk)
				require.NoError(t, err)
				require.NoError(t, json.Unmarshal(raw, back))
				require.True(t, equality.Semantic.DeepEqual(object, back), cmp.Diff(object, back))

				converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
				require.NoError(t, err)
				fromMap, err := s.New(gvk)
				require.NoError(t, err)
				require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(converted, fromMap))
				require.True(t, equality.Semantic.DeepEqual(object, fromMap), cmp.Diff(object, fromMap))
			}
		})
	}
}

// filler makes random objects that JSON can hold.
func filler() *randfill.Filler {
	return randfill.NewWithSeed(20261121).NilChance(0.2).NumElements(1, 3).MaxDepth(20).Funcs(
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.Fill(&m.Name)
			c.Fill(&m.Namespace)
			c.Fill(&m.Labels)
			c.Fill(&m.Annotations)
			c.Fill(&m.Finalizers)
		},
		func(when *metav1.Time, c randfill.Continue) { *when = metav1.Unix(int64(c.Int31()), 0) },
		func(d *metav1.Duration, c randfill.Continue) { d.Duration = time.Duration(c.Int31()) * time.Second },
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(fmt.Sprintf("%dMi", c.Int31()))
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			if *v = intstr.FromInt32(c.Int31()); c.Bool() {
				*v = intstr.FromString(fmt.Sprintf("%d%%", c.Intn(100)))
			}
		},
		func(m *workv1.Manifest, c randfill.Continue) {
			m.Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","n":%d}`, c.Int31())
		},
	)
}

// TestExplicitValuesReachTheServer names the fields in which a Go zero value means
// something other than absence.
func TestExplicitValuesReachTheServer(t *testing.T) {
	zero, empty := int32(0), ""
	cases := map[string]struct {
		object any
		want   string
	}{
		"a cluster that is not accepted": {clusterv1.ManagedClusterSpec{}, `{"hubAcceptsClient":false}`},
		"a prioritizer that is left out": {
			clusterv1beta1.PrioritizerConfig{ScoreCoordinate: &clusterv1beta1.ScoreCoordinate{}, Weight: &zero},
			`{"scoreCoordinate":{},"weight":0}`,
		},
		"no clusters": {
			clusterv1beta1.PlacementSpec{NumberOfClusters: &zero},
			`{"numberOfClusters":0}`,
		},
		"a namespace that is left alone": {
			addonv1alpha1.AddOnDeploymentConfigSpec{AgentInstallNamespace: &empty},
			`{"agentInstallNamespace":""}`,
		},
		"decisions that ran out": {
			clusterv1beta1.PlacementDecisionStatus{Decisions: []clusterv1beta1.ClusterDecision{}},
			`{"decisions":[]}`,
		},
		"health probes that are switched off": {
			operatorv1.BindConfiguration{HealthProbePort: &zero},
			`{"healthProbePort":0}`,
		},
		"a work that goes as soon as it is done": {
			workv1.DeleteOption{TTLSecondsAfterFinished: new(int64)},
			`{"ttlSecondsAfterFinished":0}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(tc.object)
			require.NoError(t, err)
			require.JSONEq(t, tc.want, string(raw))
		})
	}
}

// TestNothingIsSentForAnEmptyStatus makes sure that a typed client that writes a spec
// does not send part of a status.
func TestNothingIsSentForAnEmptyStatus(t *testing.T) {
	s := scheme(t)
	for _, gvk := range kinds(t) {
		object, err := s.New(gvk)
		require.NoError(t, err)
		converted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		require.NoError(t, err)
		require.NotContains(t, converted, "status", gvk)
	}
}
