// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

const setLabel = clusterv1.LabelClusterSet

// raw creates an object exactly as written, without a Go type that would drop or default
// fields.
func raw(dyn dynamic.Interface, resource schema.GroupVersionResource, object string) error {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(object)); err != nil {
		return err
	}
	_, err := dyn.Resource(resource).Namespace(u.GetNamespace()).Create(context.Background(), u, metav1.CreateOptions{})
	return err
}

func rawCluster(name, rest string) string {
	return `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":"` + name + `"` + rest + `}`
}

func TestWhatIsLeftOutOfAClusterIsFilledIn(t *testing.T) {
	s := sharedHub(t)
	for name, tc := range map[string]struct {
		rest  string
		lease int32
		set   string
	}{
		"fill-nothing":  {`}`, 60, "default"},
		"fill-zero":     {`},"spec":{"leaseDurationSeconds":0}`, 60, "default"},
		"fill-nospec":   {`},"spec":{}`, 60, "default"},
		"fill-given":    {`},"spec":{"leaseDurationSeconds":30}`, 30, "default"},
		"fill-empty":    {`,"labels":{"` + setLabel + `":""}}`, 60, "default"},
		"fill-others":   {`,"labels":{"a":"b"}}`, 60, "default"},
		"fill-unknown":  {`,"labels":{"` + setLabel + `":"nobody-made-it"}}`, 60, "nobody-made-it"},
		"fill-accepted": {`},"spec":{"hubAcceptsClient":true}`, 60, "default"},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, raw(s.dyn, clusters, rawCluster(name, tc.rest)))
			mc := s.get(t, name)
			require.Equal(t, tc.lease, mc.Spec.LeaseDurationSeconds)
			require.Equal(t, tc.set, mc.Labels[setLabel])
		})
	}
	// A defaulted value cannot be removed again.
	require.NoError(t, patch(s.dyn, "fill-given", `{"spec":{"leaseDurationSeconds":0}}`))
	require.EqualValues(t, 60, s.get(t, "fill-given").Spec.LeaseDurationSeconds)
	require.NoError(t, patch(s.dyn, "fill-given", `{"metadata":{"labels":{"`+setLabel+`":null}}}`))
	require.NoError(t, patch(s.dyn, "fill-given", `{"metadata":{"labels":{"`+setLabel+`":""}}}`))
	require.Equal(t, "default", s.get(t, "fill-given").Labels[setLabel])
}

func TestTheHubTimesTaints(t *testing.T) {
	s := sharedHub(t)
	require.NoError(t, raw(s.dyn, clusters, rawCluster("timed", `},"spec":{"taints":[{"key":"gpu","effect":"NoSelect","timeAdded":"2001-01-01T00:00:00Z"}]}`)))
	taint := func() *clusterv1.Taint {
		for _, taint := range s.get(t, "timed").Spec.Taints {
			if taint.Key == "gpu" {
				return &taint
			}
		}
		return nil
	}
	require.WithinDuration(t, time.Now(), taint().TimeAdded.Time, time.Minute, "the caller's time is ignored")
	write := func(taints string) error { return patch(s.dyn, "timed", `{"spec":{"taints":[`+taints+`]}}`) }
	err := write(`{"key":"gpu","effect":"NoSelect","timeAdded":"2001-01-01T00:00:00Z"}`)
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	require.ErrorContains(t, err, "gpu")
	err = write(`{"key":"gpu","effect":"PreferNoSelect","timeAdded":"2001-01-01T00:00:00Z"}`)
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	require.NoError(t, write(`{"key":"gpu","effect":"PreferNoSelect"}`), "a changed effect gets a new time")
	require.NotNil(t, taint().TimeAdded)
	require.NoError(t, write(``), "removing is free")
	require.Nil(t, taint())
}

func TestInvalidClustersAreRefusedOnTheHub(t *testing.T) {
	s := sharedHub(t)
	require.NoError(t, create(s.dyn, cluster("fine")))
	for name, tc := range map[string]struct{ rest, words string }{
		"http address": {
			`},"spec":{"managedClusterClientConfigs":[{"url":"http://x"}]}`,
			`url "http://x" is invalid in client configs`,
		},
		"no host": {
			`},"spec":{"managedClusterClientConfigs":[{"url":"https://"}]}`,
			`url "https://" is invalid in client configs`,
		},
		"negative lease":  {`},"spec":{"leaseDurationSeconds":-1}`, "spec.leaseDurationSeconds"},
		"lease of years":  {`},"spec":{"leaseDurationSeconds":2147483647}`, "spec.leaseDurationSeconds"},
		"lease is a text": {`},"spec":{"leaseDurationSeconds":"60s"}`, "leaseDurationSeconds"},
		"lease overflows": {`},"spec":{"leaseDurationSeconds":4294967296}`, "leaseDurationSeconds"},
		"unknown effect":  {`},"spec":{"taints":[{"key":"k","effect":"NoExecute"}]}`, "effect"},
		"taint without":   {`},"spec":{"taints":[{"effect":"NoSelect"}]}`, "key"},
		"long taint key": {
			`},"spec":{"taints":[{"key":"` + strings.Repeat("k", 64) + `","effect":"NoSelect"}]}`,
			"spec.taints[0].key",
		},
		"long taint value": {
			`},"spec":{"taints":[{"key":"k","value":"` + strings.Repeat("v", 1025) + `","effect":"NoSelect"}]}`,
			"value",
		},
		"unprintable": {
			`},"spec":{"taints":[{"key":"k","value":"a\u0007","effect":"NoSelect"}]}`,
			"spec.taints[0].value",
		},
		"spec is a list": {`},"spec":[]`, "spec"},
		"huge authority": {
			`},"spec":{"managedClusterClientConfigs":[{"url":"https://x","caBundle":"` + strings.Repeat("QUFB", 100_000) + `"}]}`,
			"spec.managedClusterClientConfigs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := raw(s.dyn, clusters, rawCluster("wrong", tc.rest))
			require.True(t, apierrors.IsBadRequest(err) || apierrors.IsInvalid(err), "%v", err)
			require.ErrorContains(t, err, tc.words)
			// The same rules apply to an update.
			if !strings.HasPrefix(tc.rest, `},"spec":{`) {
				return
			}
			err = patch(s.dyn, "fine", `{`+strings.TrimPrefix(tc.rest, `},`)+`}`)
			require.True(t, apierrors.IsBadRequest(err) || apierrors.IsInvalid(err), "%v", err)
			require.ErrorContains(t, err, tc.words)
		})
	}
	for _, name := range []string{"dotted.name", strings.Repeat("a", 64), "kube-x"} {
		err := raw(s.dyn, clusters, rawCluster(name, `}`))
		require.True(t, apierrors.IsBadRequest(err), "%s, though it has no address: %v", name, err)
	}
}

func TestInvalidSetsAreRefusedInEveryVersion(t *testing.T) {
	s := sharedHub(t)
	for _, version := range []string{"v1beta2", "v1beta1"} {
		resource := schema.GroupVersionResource{Group: clusterv1.GroupName, Version: version, Resource: "managedclustersets"}
		set := func(name, spec string) error {
			return raw(
				s.dyn, resource,
				`{"apiVersion":"cluster.open-cluster-management.io/`+version+`","kind":"ManagedClusterSet","metadata":{"name":"`+name+`"},"spec":`+spec+`}`,
			)
		}
		require.NoError(t, set("plain-"+version, `{}`))
		require.NoError(t, set("chosen-"+version, `{"clusterSelector":{"selectorType":"LabelSelector","labelSelector":{"matchLabels":{"a":"b"}}}}`))
		for words, spec := range map[string]string{
			"spec.clusterSelector.labelSelector": `{"clusterSelector":{"selectorType":"LabelSelector",
				"labelSelector":{"matchExpressions":[{"key":"a","operator":"Like"}]}}}`,
			"is not a valid label": `{"clusterSelector":{"selectorType":"LabelSelector","labelSelector":{"matchLabels":{"a":"no label value"}}}}`,
		} {
			err := set("broken", spec)
			require.True(t, apierrors.IsBadRequest(err), "%s: %v", version, err)
			if words != "is not a valid label" {
				require.ErrorContains(t, err, words)
			}
		}
		err := set(strings.Repeat("s", 64), `{}`)
		require.True(t, apierrors.IsBadRequest(err), "%s: %v", version, err)
		require.ErrorContains(t, err, "metadata.name")
	}
	v1beta2 := schema.GroupVersionResource{Group: clusterv1.GroupName, Version: "v1beta2", Resource: "managedclustersets"}
	_, err := s.dyn.Resource(v1beta2).Patch(
		t.Context(), "plain-v1beta2", types.MergePatchType,
		[]byte(`{"spec":{"managedNamespaces":[{"name":"kube-system"}]}}`), metav1.PatchOptions{},
	)
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	require.ErrorContains(t, err, "spec.managedNamespaces[0].name")
	_, err = s.dyn.Resource(v1beta2).Patch(
		t.Context(), "plain-v1beta2", types.MergePatchType,
		[]byte(`{"spec":{"managedNamespaces":[{"name":"web"}]}}`), metav1.PatchOptions{},
	)
	require.NoError(t, err)
}

func TestAcceptanceAtCreationNeedsThePermission(t *testing.T) {
	s := sharedHub(t)
	without := s.user(t, "creator-without", editClusters, joinAny)
	accepted := rawCluster("born-accepted", `},"spec":{"hubAcceptsClient":true}`)
	settled(t, func() error { return create(without, cluster("born-waiting")) })
	err := raw(without, clusters, accepted)
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "managedclusters/accept")
	other := acceptAny
	other.ResourceNames = []string{"born"}
	err = raw(s.user(t, "creator-other", editClusters, joinAny, other), clusters, accepted)
	require.True(t, apierrors.IsForbidden(err), "the right on another cluster is none: %v", err)
	with := s.user(t, "creator-with", editClusters, joinAny, acceptAny)
	settled(t, func() error { return raw(with, clusters, accepted) })

	// A known weakness of Open Cluster Management: any creator may choose any set.
	unjoined := s.user(t, "creator-unjoined", editClusters)
	settled(t, func() error {
		if err := create(unjoined, cluster("unjoined")); !strings.Contains(err.Error(), "managedclustersets") {
			return err
		}
		return nil
	})
	err = create(unjoined, cluster("unjoined"))
	require.True(t, apierrors.IsForbidden(err), "without a set it is the set default: %v", err)
	require.ErrorContains(t, err, "managedclustersets/join")
}

func TestABindingThatStandsNeedsNoRightToBeLabelled(t *testing.T) {
	s := sharedHub(t)
	_, err := s.kube.CoreV1().Namespaces().Create(t.Context(), namespace("labellers"), metav1.CreateOptions{})
	require.NoError(t, err)
	bindings := schema.GroupVersionResource{Group: clusterv1.GroupName, Version: "v1beta2", Resource: "managedclustersetbindings"}
	require.NoError(
		t,
		raw(
			s.dyn, bindings,
			`{"apiVersion":"cluster.open-cluster-management.io/v1beta2","kind":"ManagedClusterSetBinding",
				"metadata":{"namespace":"labellers","name":"tools"},"spec":{"clusterSet":"tools"}}`,
		),
	)
	editor := s.user(t, "labeller", rbacv1.PolicyRule{
		APIGroups: []string{clusterv1.GroupName},
		Resources: []string{"managedclustersetbindings"},
		Verbs:     []string{"*"},
	})
	change := func(body string) error {
		_, err := editor.Resource(bindings).Namespace("labellers").Patch(context.Background(), "tools", types.MergePatchType, []byte(body), metav1.PatchOptions{})
		return err
	}
	settled(t, func() error { return change(`{"metadata":{"labels":{"a":"b"}}}`) })
	err = change(`{"spec":{"clusterSet":"other"}}`)
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	err = change(`{"spec":{"clusterSet":""}}`)
	require.True(t, apierrors.IsBadRequest(err) || apierrors.IsInvalid(err), "%v", err)
}
