// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

var ours = metav1.OwnerReference{APIVersion: "work.open-cluster-management.io/v1", Kind: "AppliedManifestWork", Name: "h-web", UID: "ours"}

func other(uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "work.open-cluster-management.io/v1", Kind: "AppliedManifestWork", Name: "h-other", UID: uid}
}

func object(owners ...metav1.OwnerReference) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	u.SetName("a")
	u.SetNamespace("n")
	u.SetOwnerReferences(owners)
	return u
}

func TestOptionsAreThoseOfTheFirstEntryThatNamesAStrategy(t *testing.T) {
	id := ID{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web"}
	entry := func(namespace, name string, u *workv1.UpdateStrategy) workv1.ManifestConfigOption {
		return workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{
				Group:     "apps",
				Resource:  "deployments",
				Namespace: namespace,
				Name:      name,
			},
			UpdateStrategy: u,
		}
	}
	update := Options{Strategy: "Update", Manager: "work-agent", Force: true, Owned: true}
	server := func(c *workv1.ServerSideApplyConfig) *workv1.UpdateStrategy {
		return &workv1.UpdateStrategy{Type: "ServerSideApply", ServerSideApply: c}
	}
	replicas := []workv1.IgnoreField{{Condition: "OnSpokePresent", JSONPaths: []string{".spec.replicas"}}}
	for name, tc := range map[string]struct {
		configs []workv1.ManifestConfigOption
		want    Options
		wantErr string
	}{
		"without entries": {nil, update, ""},
		"an entry without strategy": {
			[]workv1.ManifestConfigOption{
				entry("*", "*", nil),
				entry("*", "*", &workv1.UpdateStrategy{Type: "ReadOnly"}),
			},
			Options{Strategy: "ReadOnly", Manager: "work-agent", Force: true, Owned: true},
			"",
		},
		"the first match": {
			[]workv1.ManifestConfigOption{
				entry("other", "*", server(nil)),
				entry("sh*", "w*b", &workv1.UpdateStrategy{Type: "CreateOnly"}),
				entry("*", "*", server(nil)),
			},
			Options{Strategy: "CreateOnly", Manager: "work-agent", Force: true, Owned: true},
			"",
		},
		"a strategy without type": {
			[]workv1.ManifestConfigOption{entry("*", "*", &workv1.UpdateStrategy{})},
			update,
			"",
		},
		"server-side apply as it is": {
			[]workv1.ManifestConfigOption{entry("*", "*", server(nil))},
			Options{Strategy: "ServerSideApply", Manager: "work-agent", Owned: true},
			"",
		},
		"server-side apply with options": {
			[]workv1.ManifestConfigOption{
				entry("*", "*", server(&workv1.ServerSideApplyConfig{Force: true, FieldManager: "work-agent-x"})),
			},
			Options{Strategy: "ServerSideApply", Manager: "work-agent-x", Force: true, Owned: true},
			"",
		},
		"somebody else's manager": {
			[]workv1.ManifestConfigOption{
				entry("*", "*", server(&workv1.ServerSideApplyConfig{FieldManager: "kubectl"})),
			},
			Options{},
			"updateStrategy.serverSideApply.fieldManager: must begin with work-agent; correct it",
		},
		"fields to ignore": {
			[]workv1.ManifestConfigOption{
				entry("*", "*", server(&workv1.ServerSideApplyConfig{IgnoreFields: replicas})),
			},
			Options{Strategy: "ServerSideApply", Manager: "work-agent", Owned: true, Ignore: replicas},
			"",
		},
		"fields that cannot be read": {
			[]workv1.ManifestConfigOption{
				entry("*", "*", server(&workv1.ServerSideApplyConfig{IgnoreFields: []workv1.IgnoreField{
					{Condition: "OnSpokePresent", JSONPointers: []string{"spec"}},
				}})),
			},
			Options{},
			`OnSpokePresent.jsonPointers[0] "spec": must begin with "/"; write it as in /spec/replicas`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := OptionsFor(&workv1.ManifestWorkSpec{ManifestConfigs: tc.configs}, id)
			if tc.wantErr != "" {
				require.EqualError(t, err, tc.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestOwnershipFollowsTheDeleteOption(t *testing.T) {
	id := ID{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web"}
	rule := workv1.OrphaningRule{Group: "apps", Resource: "deployments", Namespace: "shop", Name: "web"}
	wild := rule
	wild.Name = "*"
	for name, tc := range map[string]struct {
		option *workv1.DeleteOption
		want   bool
	}{
		"no option":                 {nil, true},
		"foreground":                {&workv1.DeleteOption{PropagationPolicy: "Foreground"}, true},
		"orphan":                    {&workv1.DeleteOption{PropagationPolicy: "Orphan"}, false},
		"selectively without rules": {&workv1.DeleteOption{PropagationPolicy: "SelectivelyOrphan"}, true},
		"selectively with its rule": {
			&workv1.DeleteOption{PropagationPolicy: "SelectivelyOrphan", SelectivelyOrphans: &workv1.SelectivelyOrphans{OrphaningRules: []workv1.OrphaningRule{rule}}},
			false,
		},
		"selectively with a wildcard": {
			&workv1.DeleteOption{PropagationPolicy: "SelectivelyOrphan", SelectivelyOrphans: &workv1.SelectivelyOrphans{OrphaningRules: []workv1.OrphaningRule{wild}}},
			true,
		},
		"rules without the policy": {
			&workv1.DeleteOption{PropagationPolicy: "Foreground", SelectivelyOrphans: &workv1.SelectivelyOrphans{OrphaningRules: []workv1.OrphaningRule{rule}}},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, Owned(tc.option, id)) })
	}
}

func TestGlob(t *testing.T) {
	for pattern, texts := range map[string]map[string]bool{
		"":      {"": true, "a": false},
		"*":     {"": true, "a": true},
		"a":     {"a": true, "ab": false, "ba": false},
		"a*":    {"a": true, "ab": true, "ba": false},
		"*a":    {"a": true, "ba": true, "ab": false},
		"a*b*c": {"abc": true, "a-b-c": true, "ac": false, "abcd": false, "abbcc": true},
		"ab*ba": {"aba": false, "abba": true},
		"a.c":   {"abc": false, "a.c": true},
	} {
		for text, want := range texts {
			require.Equal(t, want, glob(pattern, text), "%q matches %q", pattern, text)
		}
	}
}

func TestOwnersOfOthersAreKept(t *testing.T) {
	declared := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "parent", UID: "declared"}
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "theirs", UID: "foreign"}
	live := object(other("other"), foreign, ours)
	require.Equal(t, []metav1.OwnerReference{declared, other("other"), ours}, wantedOwners([]metav1.OwnerReference{declared, ours, declared}, live, ours, true))
	require.Equal(t, []metav1.OwnerReference{other("other")}, wantedOwners(nil, live, ours, false))
	require.Equal(t, []metav1.OwnerReference{ours}, wantedOwners(nil, nil, ours, true))

	next, changed := withOwner(live, ours, false)
	require.True(t, changed)
	require.Equal(t, []metav1.OwnerReference{other("other"), foreign}, next)
	_, changed = withOwner(live, ours, true)
	require.False(t, changed)
	next, changed = withOwner(object(foreign), ours, true)
	require.True(t, changed)
	require.Equal(t, []metav1.OwnerReference{foreign, ours}, next)

	impostor := ours
	impostor.APIVersion = "example.com/v1"
	require.False(t, hasOwner(object(impostor), ours.UID))
	require.True(t, sharedBy(live, ours.UID))
	require.False(t, sharedBy(object(ours, foreign), ours.UID))
}

// managed is an object with one entry of managed fields.
func managed(version string, entry metav1.ManagedFieldsEntry, owners ...metav1.OwnerReference) *unstructured.Unstructured {
	u := object(owners...)
	u.SetUID("uid")
	u.SetResourceVersion(version)
	entry.FieldsType = "FieldsV1"
	if entry.FieldsV1 == nil {
		entry.FieldsV1 = metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)
	}
	u.SetManagedFields([]metav1.ManagedFieldsEntry{
		{
			Manager:    "kubectl",
			Operation:  "Update",
			FieldsType: "FieldsV1",
			FieldsV1:   metav1.NewFieldsV1(`{"f:x` + version + `":{}}`),
		},
		entry,
	})
	return u
}

func TestDriftIsToldFromMetadataAlone(t *testing.T) {
	entry := metav1.ManagedFieldsEntry{Manager: "work-agent", Operation: "Apply"}
	o := Options{Strategy: "Update", Manager: "work-agent", Owned: true}
	after := Result{Seen: See(managed("100", entry, ours))}
	change := func(f func(*metav1.ManagedFieldsEntry)) *unstructured.Unstructured {
		e := entry
		f(&e)
		return managed("101", e, ours)
	}
	for name, tc := range map[string]struct {
		options Options
		after   Result
		now     *unstructured.Unstructured
		want    bool
	}{
		"others wrote other fields":     {o, after, managed("101", entry, ours), false},
		"another work may have written": {o, after, managed("101", entry, ours, other("x")), true},
		"it is older than what we left": {o, after, managed("99", entry), false},
		"versions of another kind":      {o, Result{Seen: See(managed("a", entry, ours))}, managed("b", entry), true},
		"our reference is gone":         {o, after, managed("101", entry), true},
		"a field was taken from us": {
			o,
			after,
			change(func(e *metav1.ManagedFieldsEntry) { e.FieldsV1 = metav1.NewFieldsV1(`{}`) }),
			true,
		},
		"somebody applied under our name": {
			o,
			after,
			change(func(e *metav1.ManagedFieldsEntry) { e.Time = &metav1.Time{Time: time.Unix(5, 0)} }),
			true,
		},
		"the managed fields were cleared": {
			o,
			after,
			change(func(e *metav1.ManagedFieldsEntry) { e.Manager = "x" }),
			true,
		},
		"our fields in a subresource": {
			o,
			after,
			change(func(e *metav1.ManagedFieldsEntry) { e.Subresource = "status" }),
			true,
		},
		"our orphan gets a reference": {
			Options{Strategy: "Update", Manager: "work-agent"},
			after,
			managed("101", entry, ours),
			true,
		},
		"created only": {
			Options{Strategy: "CreateOnly", Owned: true},
			after,
			change(func(e *metav1.ManagedFieldsEntry) { e.FieldsV1 = metav1.NewFieldsV1(`{}`) }),
			false,
		},
		"read only": {
			Options{Strategy: "ReadOnly", Owned: true},
			after,
			managed("101", entry),
			false,
		},
		"written by a merge, so who knows": {
			o,
			Result{Seen: after.Seen, Merged: "x"},
			managed("101", entry, ours),
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, Drifted(tc.options, ours.UID, tc.after, See(tc.now)))
		})
	}
	replaced := See(managed("101", entry, ours))
	replaced.UID = "another"
	require.True(t, Drifted(Options{Strategy: "ReadOnly"}, ours.UID, after, replaced))
	require.True(t, See(managed("1", entry, ours)).HasOwners())
}

func TestMessagesNameTheFix(t *testing.T) {
	gr := schema.GroupResource{Resource: "configmaps"}
	immutable := apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "j", field.ErrorList{
		field.Invalid(field.NewPath("spec", "template"), "sesame", "field is immutable"),
	})
	for name, tc := range map[string]struct {
		err      error
		secret   bool
		contains []string
		without  string
	}{
		"immutable": {
			immutable,
			false,
			[]string{"spec.template", "delete the object on the cluster, or declare it under another name"},
			"withheld",
		},
		"immutable in a secret": {
			immutable,
			true,
			[]string{
				"answered Invalid (code 422) for spec.template (FieldValueInvalid); details are withheld",
				"declare it under another name",
			},
			"sesame",
		},
		"missing namespace": {
			apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop"),
			false,
			[]string{`namespaces "shop" not found; create the namespace, or declare it in the work`},
			"withheld",
		},
		"forbidden": {
			apierrors.NewForbidden(gr, "a", errors.New(`User "x" cannot patch`)),
			false,
			[]string{"aggregate-to-work"},
			"withheld",
		},
		"several lines":       {errors.New("one\n  two\tthree"), false, []string{"one two three"}, "\n"},
		"no answer, a secret": {errors.New("sesame"), true, []string{"could not be applied"}, "sesame"},
		"deleting, a secret": {
			&DeletingError{finalizers: []string{"x/y"}},
			true,
			[]string{"waits for the finalizers x/y"},
			"withheld",
		},
		"conflict, a secret": {
			&ConflictError{Err: apierrors.NewConflict(gr, "a", errors.New("sesame"))},
			true,
			[]string{"answered Conflict (code 409)"},
			"sesame",
		},
		"very long": {errors.New(strings.Repeat("ä", 4000)), false, []string{"..."}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			text := Message(tc.err, tc.secret)
			for _, want := range tc.contains {
				require.Contains(t, text, want)
			}
			require.NotContains(t, text, tc.without)
			require.LessOrEqual(t, len(text), maxMessage+64)
			require.True(t, utf8.ValidString(text))
		})
	}
}

func TestRefusalsAreTold(t *testing.T) {
	text, ok := refused(errors.New(`failed to create typed patch object (n/web; apps/v1, Kind=Deployment): errors:
  .spec.template.spec.containers[name="web"].env: duplicate entries for key [name="A"]`))
	require.True(t, ok)
	require.Equal(t, `.spec.template.spec.containers[name="web"].env: duplicate entries for key [name="A"]`, text)
	text, ok = refused(errors.New(`failed to create typed patch object (n/web; apps/v1, Kind=Deployment): .spec.nope: field not declared in schema`))
	require.True(t, ok)
	require.Equal(t, `.spec.nope: field not declared in schema`, text)
	_, ok = refused(errors.New("admission webhook denied the request"))
	require.False(t, ok)
}

func TestThreeWayTakesBackOnlyWhatWasOurs(t *testing.T) {
	live := map[string]any{
		"labels": map[string]any{"ours": "1", "dropped": "1", "theirs": "1"},
		"spec":   map[string]any{"list": []any{int64(1), int64(2)}, "block": map[string]any{"a": "1", "theirs": "1"}},
	}
	desired := map[string]any{"labels": map[string]any{"ours": "2"}, "spec": map[string]any{"list": []any{int64(1)}}}
	owned := fieldpath.NewSet()
	require.NoError(t, owned.FromJSON(strings.NewReader(`{"f:labels":{"f:ours":{},"f:dropped":{}},"f:spec":{"f:list":{},"f:block":{"f:a":{}}}}`)))
	require.Empty(t, cmp.Diff(map[string]any{
		"labels": map[string]any{"ours": "2", "dropped": nil},
		"spec":   map[string]any{"list": []any{int64(1)}, "block": map[string]any{"a": nil}},
	}, threeWay(live, desired, owned)))
}

// FuzzThreeWay: after the patch every desired field is as desired, no field of others is
// lost, and a second patch is empty.
func FuzzThreeWay(f *testing.F) {
	f.Add(`{"a":{"b":1},"c":[1]}`, `{"a":{"b":2}}`, `{"f:a":{"f:b":{}},"f:c":{}}`)
	f.Add(`{"a":1}`, `{"a":{"b":null}}`, `{}`)
	f.Fuzz(func(t *testing.T, liveText, desiredText, ownedText string) {
		var live, desired map[string]any
		owned := fieldpath.NewSet()
		if json.Unmarshal([]byte(liveText), &live) != nil || json.Unmarshal([]byte(desiredText), &desired) != nil ||
			owned.FromJSON(strings.NewReader(ownedText)) != nil || live == nil || desired == nil || hasNull(live) || hasNull(desired) {
			return
		}
		patch, err := json.Marshal(threeWay(live, desired, owned))
		require.NoError(t, err)
		after := merged(t, live, patch)
		require.Empty(t, missing(desired, after), "live %s desired %s patch %s", liveText, desiredText, patch)
		again := threeWay(after, desired, fieldpath.NewSet())
		require.Empty(t, again, "live %s desired %s", liveText, desiredText)
		if len(desired) == 0 && owned.Empty() {
			require.Empty(t, cmp.Diff(live, after))
		}
	})
}

func hasNull(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case map[string]any:
		for _, c := range x {
			if hasNull(c) {
				return true
			}
		}
	case []any:
		for _, c := range x {
			if hasNull(c) {
				return true
			}
		}
	}
	return false
}

// merged applies a merge patch as an API server does.
func merged(t *testing.T, live map[string]any, patch []byte) map[string]any {
	t.Helper()
	raw, err := json.Marshal(live)
	require.NoError(t, err)
	var p map[string]any
	require.NoError(t, json.Unmarshal(patch, &p))
	out := map[string]any{}
	require.NoError(t, json.Unmarshal(raw, &out))
	mergeInto(out, p)
	return out
}

func mergeInto(out, patch map[string]any) {
	for k, v := range patch {
		child, isMap := v.(map[string]any)
		have, bothMap := out[k].(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case isMap && bothMap:
			mergeInto(have, child)
		default:
			out[k] = v
		}
	}
}

// missing returns the name of a desired field that is not as desired.
func missing(desired, have map[string]any) string {
	for k, want := range desired {
		wantMap, ok := want.(map[string]any)
		haveMap, both := have[k].(map[string]any)
		if ok && both {
			if m := missing(wantMap, haveMap); m != "" {
				return k + "." + m
			}
			continue
		}
		if fmt.Sprint(want) != fmt.Sprint(have[k]) {
			return k
		}
	}
	return ""
}

// FuzzGlob: a pattern without stars is equality, and a pattern made of a text by
// putting stars into it matches the text.
func FuzzGlob(f *testing.F) {
	f.Add("shop-*-web", "shop-1-web", uint8(3))
	f.Fuzz(func(t *testing.T, pattern, text string, at uint8) {
		got := glob(pattern, text)
		if !strings.Contains(pattern, "*") {
			require.Equal(t, pattern == text, got)
		}
		if !strings.Contains(text, "*") && int(at) <= len(text) {
			require.True(t, glob(text[:at]+"*"+text[at:], text))
			require.True(t, glob(text[:at]+"*", text))
			require.True(t, glob("*"+text[at:], text))
		}
	})
}
