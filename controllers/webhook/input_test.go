// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

func leased(seconds int32) func(*clusterv1.ManagedCluster) {
	return func(o *clusterv1.ManagedCluster) { o.Spec.LeaseDurationSeconds = seconds }
}

func clients(configs ...clusterv1.ClientConfig) func(*clusterv1.ManagedCluster) {
	return func(o *clusterv1.ManagedCluster) { o.Spec.ManagedClusterClientConfigs = configs }
}

func TestInvalidClustersAreRefusedByField(t *testing.T) {
	many := make([]clusterv1.ClientConfig, 33)
	for i := range many {
		many[i].URL = fmt.Sprintf("https://h%d", i)
	}
	taint := func(key, value string) func(*clusterv1.ManagedCluster) {
		return tainted(clusterv1.Taint{Key: key, Value: value, Effect: "NoSelect"})
	}
	for name, tc := range map[string]struct {
		change  func(*clusterv1.ManagedCluster)
		message string
	}{
		"a negative lease duration": {leased(-1), "spec.leaseDurationSeconds: -1"},
		"a lease duration of years": {
			leased(1 << 30),
			"spec.leaseDurationSeconds: 1073741824 is not between 1 and 86400",
		},
		"a taint whose name is too long":    {taint(strings.Repeat("k", 64), ""), "spec.taints[0].key"},
		"a taint without a key":             {taint("", ""), "spec.taints[0].key"},
		"a taint key with two slashes":      {taint("a/b/c", ""), "spec.taints[0].key"},
		"a taint value with a newline":      {taint("k", "a\nb"), "spec.taints[0].value"},
		"a taint value with an escape code": {taint("k", "\x1b[31m"), "spec.taints[0].value"},
		"annotations of 40 KiB": {
			annotated("a", strings.Repeat("x", 40<<10)),
			"metadata.labels, metadata.annotations",
		},
		"33 addresses": {clients(many...), "33 entries"},
		"an authority of 300 KiB": {
			clients(clusterv1.ClientConfig{URL: "https://h", CABundle: make([]byte, 300<<10)}),
			"262144 bytes",
		},
		"an address without scheme": {
			clients(clusterv1.ClientConfig{URL: "h:6443"}),
			`url "h:6443" is invalid in client configs`,
		},
		"an empty address": {clients(clusterv1.ClientConfig{}), `url "" is invalid in client configs`},
		"an address of a script": {
			clients(clusterv1.ClientConfig{URL: "javascript:alert(1)"}),
			"is invalid in client configs",
		},
		"a second address that is wrong": {
			clients(clusterv1.ClientConfig{URL: "https://h"}, clusterv1.ClientConfig{URL: "ftp://h"}),
			`url "ftp://h" is invalid in client configs`,
		},
		"the name of a namespace of Kubernetes": {named("kube-public"), "reserved"},
		"the name default":                      {named("default"), "reserved"},
		"a name in capitals":                    {named("PROD"), "metadata.name"},
		"a name of 64 characters":               {named(strings.Repeat("a", 64)), "metadata.name"},
		"no name":                               {named(""), "metadata.name"},
	} {
		t.Run(name, func(t *testing.T) {
			h := server(&stated{rights: []string{"create managedclustersets/join s1"}}, all)
			wrong := mc(tc.change)
			check(t, send(t, h, webhook.PathValidateCluster, nil, wrong, person), 400, tc.message)
			// What is already stored does not prevent other changes.
			changed := wrong.DeepCopy()
			changed.Annotations = map[string]string{"a": "b"}
			check(t, send(t, h, webhook.PathValidateCluster, wrong, changed, person), 0, "")
		})
	}
}

func TestTheTextOfAnInvalidAddressIsTheWiresAndTheRestAWarning(t *testing.T) {
	wrong := mc(clients(clusterv1.ClientConfig{URL: "https://h"}, clusterv1.ClientConfig{URL: "ftp://h"}))
	response := send(t, server(&stated{}, all), webhook.PathValidateCluster, nil, wrong, person)
	require.Equal(t, `url "ftp://h" is invalid in client configs`, response.Result.Message)
	require.Equal(
		t, []string{"spec.managedClusterClientConfigs[1].url must begin with https:// and name a host"}, response.Warnings,
	)
}

func TestALeaseDurationOfZeroIsTheDefault(t *testing.T) {
	h := server(&stated{}, all)
	for name, tc := range map[string]struct {
		old, current *clusterv1.ManagedCluster
		want         int32
	}{
		"at creation":                        {nil, mc(), 60},
		"given at creation":                  {nil, mc(leased(30)), 30},
		"when it is set to 0":                {mc(leased(30)), mc(), 60},
		"a stored one is left to who set it": {mc(), mc(annotated("a", "b")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			var old any
			if tc.old != nil {
				old = tc.old
			}
			response := send(t, h, webhook.PathMutateCluster, old, tc.current, person)
			require.True(t, response.Allowed)
			require.Equal(t, tc.want, patched(t, tc.current, response).Spec.LeaseDurationSeconds)
		})
	}
}

func TestValidateSet(t *testing.T) {
	set := func(name string, selector *metav1.LabelSelector, namespaces ...string) *clusterv1beta2.ManagedClusterSet {
		s := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if selector != nil {
			s.Spec.ClusterSelector.SelectorType, s.Spec.ClusterSelector.LabelSelector = clusterv1beta2.SelectorTypeLabelSelector, selector
		}
		for _, n := range namespaces {
			s.Spec.ManagedNamespaces = append(s.Spec.ManagedNamespaces, clusterv1.ManagedNamespaceConfig{Name: n})
		}
		return s
	}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Like"}}}
	empty := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "In"}}}
	value := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "not a label value"}}
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf("n%d", i)
	}
	for name, tc := range map[string]struct {
		set     *clusterv1beta2.ManagedClusterSet
		message string
	}{
		"a set":                        {set("s", nil, "web"), ""},
		"everything":                   {set("global", &metav1.LabelSelector{}), ""},
		"nothing":                      {set("s", nil), ""},
		"an operator that is none":     {set("s", broken), "spec.clusterSelector.labelSelector"},
		"an operator without values":   {set("s", empty), "spec.clusterSelector.labelSelector"},
		"a value that no label has":    {set("s", value), "spec.clusterSelector.labelSelector"},
		"a name that is too long":      {set(strings.Repeat("s", 64), nil), "metadata.name: it cannot be the value of a cluster label"},
		"a namespace of Kubernetes":    {set("s", nil, "web", "kube-system"), "spec.managedNamespaces[1].name"},
		"the default namespace":        {set("s", nil, "default"), ""},
		"the namespace of the agent":   {set("s", nil, "open-cluster-management-agent"), "namespace of the system"},
		"a name that no namespace has": {set("s", nil, "a.b"), "is not the name of a namespace"},
		"a hundred and one namespaces": {set("s", nil, many...), "101 namespaces, more than 100"},
	} {
		t.Run(name, func(t *testing.T) {
			h := server(&stated{}, all)
			if tc.message == "" {
				check(t, send(t, h, webhook.PathValidateSet, nil, tc.set, person), 0, "")
			} else {
				check(t, send(t, h, webhook.PathValidateSet, nil, tc.set, person), 400, tc.message)
			}
			// A stored set accepts other changes and can be deleted, whatever it contains.
			changed := tc.set.DeepCopy()
			changed.Labels = map[string]string{"a": "b"}
			check(t, send(t, h, webhook.PathValidateSet, tc.set, changed, person), 0, "")
			changed.DeletionTimestamp, changed.Spec.ClusterSelector.LabelSelector = at(now), broken
			check(t, send(t, h, webhook.PathValidateSet, tc.set, changed, person), 0, "")
		})
	}
}
