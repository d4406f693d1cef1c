// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/goldentest"
)

// agent is the manifest of an add-on.
const agent = `apiVersion: apps/v1
kind: Deployment
metadata: {name: agent, namespace: agents}
spec:
  template:
    spec:
      containers: [{name: agent, image: "quay.io/a/agent:1", args: ["--cluster={{CLUSTER_NAME}}", "--level={{LEVEL}}"]}]
`

// newAddOnsScene returns a hub with add-ons in all states.
func newAddOnsScene(t *testing.T) *scene { t.Helper(); return newWorksScene(t, "addons") }

func TestWhatIsPrintedOfAddOns(t *testing.T) {
	for name, line := range map[string]string{
		"list":                   "addon list",
		"list-wide":              "addon list -o wide",
		"list-json":              "addon list metrics -o json",
		"list-cluster":           "addon list -c cluster1",
		"list-label":             "addon list -l team=sre -o name",
		"list-missing":           "addon list nosuch",
		"list-wrong":             "addon list -l team=",
		"status":                 "addon status metrics",
		"status-cluster":         "addon status metrics -c cluster1",
		"status-json":            "addon status metrics -c cluster2 -o json",
		"status-silent":          "addon status logs",
		"status-going":           "addon status stray",
		"status-nowhere":         "addon status hello",
		"status-missing":         "addon status nosuch",
		"enable":                 "addon enable logs -c cluster1,cluster2 --labels tier=two --annotations a=b --install-namespace logs",
		"enable-dry-run":         "addon enable hello logs -c cluster1 --dry-run",
		"enable-diff":            "addon enable logs -c cluster1 --labels tier=two --diff",
		"enable-again":           "addon enable metrics -c cluster1",
		"enable-not-selected":    "addon enable metrics -c cluster1,cluster3",
		"enable-set":             "addon enable metrics -c cluster1 --set LEVEL=debug,PORT=80 --dry-run",
		"enable-set-new":         "addon enable hello -c cluster1 --set LEVEL=debug --dry-run",
		"enable-config":          "addon enable logs -c cluster1 --config addontemplates//logs-0.4.0 --dry-run",
		"enable-config-file":     "addon enable hello -c cluster1 --config - --dry-run",
		"enable-config-wrong":    "addon enable hello -c cluster1 --config small",
		"enable-no-target":       "addon enable logs",
		"enable-no-name":         "addon enable -c cluster1",
		"enable-missing":         "addon enable nosuch -c cluster1",
		"enable-no-cluster":      "addon enable logs -c nosuch",
		"enable-wait":            "addon enable logs -c cluster1 --wait --timeout 3s",
		"enable-wait-config":     "addon enable metrics -c cluster1 --set LEVEL=debug --wait --timeout 1s",
		"enable-wait-content":    "addon enable metrics -c cluster1 --config addondeploymentconfigs/cfg/small --wait --timeout 1s",
		"enable-wait-spec":       "addon enable mesh -c cluster2 --install-namespace mesh --wait --timeout 1s",
		"enable-wait-json":       "addon enable metrics -c cluster1 --wait -o json",
		"enable-placement":       "addon enable hello --placement apps/everywhere",
		"enable-placement-twice": "addon enable metrics --placement apps/everywhere",
		"enable-placement-asks":  "addon enable logs --placement apps/nobody",
		"enable-placement-new":   "addon enable logs --placement apps/new --timeout 1s",
		"enable-placement-new-y": "addon enable logs --placement apps/new --yes",
		"enable-placement-diff":  "addon enable logs --placement apps/everywhere --config addondeploymentconfigs/cfg/small --diff",
		"enable-placement-none":  "addon enable logs --placement apps/nosuch",
		"enable-placement-self":  "addon enable mesh --placement apps/everywhere",
		"enable-placement-set":   "addon enable logs --placement apps/everywhere --set A=b",
		"enable-placement-both":  "addon enable logs --placement apps/everywhere -c cluster1",
		"resume":                 "addon resume fleetd --timeout 1s",
		"resume-later":           "addon resume fleetd --wait=false",
		"resume-dry-run":         "addon resume fleetd --dry-run",
		"resume-diff":            "addon resume fleetd --diff",
		"resume-nothing":         "addon resume metrics logs",
		"resume-self":            "addon resume mesh",
		"resume-missing":         "addon resume nosuch",
		"resume-no-name":         "addon resume",
		"help-resume":            "addon resume --help",
		"disable":                "addon disable logs -c cluster1 --yes",
		"disable-strategy":       "addon disable metrics -c cluster1,cluster3 --yes",
		"disable-dry-run":        "addon disable metrics -c cluster2 --dry-run",
		"disable-asks":           "addon disable metrics --all",
		"disable-no-target":      "addon disable metrics --yes",
		"disable-self":           "addon disable mesh -c cluster1",
		"disable-missing":        "addon disable nosuch -c cluster1 --yes",
		"disable-json":           "addon disable metrics -c cluster1 --yes -o json",
		"create":                 "addon create web -f - --hub-permission clusterrole/reader,shared/role/writer --display-name Web",
		"create-dry-run":         "addon create web -f - --version 1.0.0 --placement apps/everywhere --registration token --dry-run",
		"create-render":          "addon create web -f - --registration csr --render cluster2",
		"create-render-json":     "addon create web -f - --render cluster2 -o json",
		"create-render-none":     "addon create web -f - --render nosuch",
		"create-other-content":   "addon create logs -f - --version 0.3.0",
		"create-other-version":   "addon create logs -f - --version 0.4.0",
		"create-overwrite":       "addon create logs -f - --version 0.4.0 --overwrite",
		"create-self":            "addon create mesh -f -",
		"create-permission":      "addon create web -f - --hub-permission a/b/c",
		"create-version":         "addon create web -f - --version 1_0",
		"create-registration":    "addon create web -f - --registration grpc",
		"create-no-files":        "addon create web",
		"create-name":            "addon create Web_1 -f -",
		"delete":                 "addon delete logs --yes",
		"delete-asks":            "addon delete metrics",
		"delete-dry-run":         "addon delete logs --dry-run",
		"delete-later":           "addon delete logs --yes --wait=false",
		"delete-none":            "addon delete nosuch",
		"check":                  "check addon metrics logs mesh stray fleetd nosuch",
		"check-json":             "check addon fleetd -o json",
		"check-well":             "check addon hello",
		"check-no-name":          "check addon",
		"help":                   "addon --help",
		"help-enable":            "addon enable --help",
		"old-spelling":           "get addon",
		"old-flags":              "addon enable --names hello --clusters cluster1",
	} {
		t.Run(name, func(t *testing.T) {
			words := append(strings.Fields(line), "--context", "hub")
			widths := map[string]int{"": 0}
			if name == "list" || name == "list-wide" || name == "status" {
				widths = map[string]int{"": 0, "-80": 80, "-200": 200}
			}
			for suffix, width := range widths {
				s := newAddOnsScene(t)
				s.width = width
				stdin := agent
				if name == "enable-config-file" {
					stdin = "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnDeploymentConfig\n" +
						"metadata: {name: big}\nspec: {agentInstallNamespace: big}\n"
				}
				goldentest.Compare(t, "golden/addon-"+name+suffix, transcript(words, s.runIn(stdin, words...)))
			}
		})
	}
}

// Controllers may write the status of an object while a command changes it: the command
// tries again, and gives up only if the conflicts do not end.
func TestWhatSomebodyElseWritesMeanwhileIsDecidedAnew(t *testing.T) {
	for _, line := range []string{
		"addon enable metrics -c cluster1 --labels tier=two --set LEVEL=trace",
		"addon enable hello --placement apps/everywhere",
		"addon create logs -f - --version 0.4.0 --overwrite",
		"placement create web -n shop --count 2 --label-selectors region=eu --overwrite",
	} {
		t.Run(line, func(t *testing.T) {
			words := append(strings.Fields(line), "--context", "hub")
			s := newAddOnsScene(t)
			alone := s.runIn(agent, words...)
			require.Zero(t, alone.code, alone.err)

			s = newAddOnsScene(t)
			s.hub.Busy(2)
			beside := s.runIn(agent, words...)
			require.Zero(t, beside.code, beside.err)
			require.Equal(t, alone.out, beside.out)
			require.Greater(t, len(s.hub.Changes()), 2)

			s = newAddOnsScene(t)
			s.hub.Busy(1000)
			never := s.runIn(agent, words...)
			require.Equal(t, 1, never.code)
			require.Regexp(t, `others keep changing \w+ \S+`, never.err)
		})
	}
}

// Namespaced objects without a namespace get the one of -n.
func TestANamespaceForWhatNamesNone(t *testing.T) {
	const manifests = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: own}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: c}}
`
	run := func(line string) said {
		return newAddOnsScene(t).runIn(
			manifests,
			strings.Fields("addon create web -f - --render cluster2 -o jsonpath={.items[*].metadata.namespace} --context hub "+line)...,
		)
	}
	got := run("-n shop")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "shop own", strings.TrimSpace(got.out))
	got = run("")
	require.Equal(t, "own", strings.TrimSpace(got.out))
	require.Contains(t, got.err, "manifests[0] (ConfigMap a): metadata.namespace: must be set, because the kind is namespaced; name one")
	got = run("-n Shop_1")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.err, `"Shop_1" cannot be a namespace`)
}

// A template that the hub could not render is refused before anything is sent, with the
// field that is wrong.
func TestATemplateThatCannotBeRenderedIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ manifests, want, fix string }{
		"no name": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n",
			"AddOnTemplate web-0.0.1 spec.agentSpec.workload.manifests[0] (ConfigMap ) metadata.name",
			"give the object a name",
		},
		"no containers": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: b}\nspec: {template: {spec: {}}}\n",
			"(Deployment b/a) spec.template.spec.containers",
			"name at least one container",
		},
		"nothing": {
			"---\n",
			"AddOnTemplate web-0.0.1 spec.agentSpec.workload.manifests",
			"put the objects of the agent there",
		},
		"two of a name": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\n" +
				"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {c: d}\n",
			"manifests[1] (ConfigMap b/a) metadata.name",
			"use another name",
		},
		"empty variable": {
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{NAME}}', namespace: b}\n",
			"manifests[0] (ConfigMap b/{{NAME}}) metadata.name",
			"give the object a name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newAddOnsScene(t)
			got := s.runIn(tc.manifests, "addon", "create", "web", "-f", "-", "--context", "hub")
			require.Equal(t, 2, got.code, got.err)
			require.Empty(t, got.out)
			require.Empty(t, s.hub.Changes())
			require.Contains(t, got.err, tc.want)
			require.Contains(t, got.err, tc.fix)
		})
	}
}

// disable wins over an install strategy, and enable undoes that. A second run of either
// changes nothing.
func TestDisableAndEnableAgainstAnInstallStrategy(t *testing.T) {
	s := newAddOnsScene(t)
	run := func(words ...string) said {
		got := s.run(append([]string{"addon"}, append(words, "--context", "hub")...)...)
		require.Zero(t, got.code, got.err)
		return got
	}
	require.Equal(t, "managedclusteraddon/metrics deleted on cluster1\n", run("disable", "metrics", "-c", "cluster1", "--yes").out)
	require.Equal(t, []string{
		"PATCH /apis/cluster.open-cluster-management.io/v1/managedclusters/cluster1",
		"DELETE /apis/addon.open-cluster-management.io/v1alpha1/namespaces/cluster1/managedclusteraddons/metrics",
	}, s.hub.Changes())
	require.Equal(t, "managedclusteraddon/metrics unchanged on cluster1\n", run("disable", "metrics", "-c", "cluster1", "--yes").out)
	require.Contains(t, run("status", "metrics").out, "excluded by addon disable")

	require.Equal(t, "managedclusteraddon/metrics created on cluster1\n", run("enable", "metrics", "-c", "cluster1").out)
	require.Len(t, s.hub.Changes(), 4)
	require.Equal(t, "managedclusteraddon/metrics unchanged on cluster1\n", run("enable", "metrics", "-c", "cluster1").out)
	require.Len(t, s.hub.Changes(), 4)
	require.Empty(t, run("status", "metrics", "-c", "cluster1", "-o", "jsonpath={.items[*].excluded}").out)
}

// A cluster that no placement selects is excluded only if it is given by name.
func TestDisableOnAllLeavesOutThoseThatWouldGetIt(t *testing.T) {
	s := newAddOnsScene(t)
	got := s.run("addon", "disable", "metrics", "-l", "!nosuch", "--yes", "--context", "hub")
	require.Zero(t, got.code, got.err)
	require.NotContains(t, strings.Join(s.hub.Changes(), " "), "cluster3")
	require.Equal(t, 2, strings.Count(strings.Join(s.hub.Changes(), " "), "PATCH"))
}

// enable keeps existing labels, annotations, configurations of other kinds, and variables
// of an earlier run.
func TestEnableMerges(t *testing.T) {
	s := newAddOnsScene(t)
	for _, words := range []string{"--set B=2 --labels one=1", "--set A=1 --labels two=2", "--config addontemplates//logs-0.4.0"} {
		got := s.run(append(strings.Fields("addon enable logs -c cluster1 --context hub"), strings.Fields(words)...)...)
		require.Zero(t, got.code, got.err)
	}
	got := s.run("addon", "enable", "logs", "-c", "cluster1", "--set", "C=3", "--dry-run", "--context", "hub")
	goldentest.Compare(t, "golden/addon-enable-merges", got.out)
}

// TestDeleteTakesTheVariablesThatEnableSet: an object that a user wrote under the same
// name stays.
func TestDeleteTakesTheVariablesThatEnableSet(t *testing.T) {
	s := newAddOnsScene(t)
	for _, words := range []string{"hello -c cluster1 --set A=1", "hello -c cluster1 --set B=2", "logs -c cluster1 --set A=1"} {
		got := s.run(append(strings.Fields("addon enable --context hub"), strings.Fields(words)...)...)
		require.Zero(t, got.code, got.err)
	}
	got := s.run("addon", "delete", "hello", "--dry-run", "--context", "hub", "-o", "name")
	require.Zero(t, got.code, got.err)
	require.Equal(t, 1, strings.Count(got.out, "addondeploymentconfig"), got.out)
	require.Contains(t, got.out, "addondeploymentconfig.addon.open-cluster-management.io/hello")
	got = s.run("addon", "delete", "metrics", "--dry-run", "--context", "hub", "-o", "name")
	require.Zero(t, got.code, got.err)
	require.NotContains(t, got.out, "addondeploymentconfig")
}

// TestRightsOfAddOnsAreKept: a later run neither revokes nor grants rights unless it is
// asked to.
func TestRightsOfAddOnsAreKept(t *testing.T) {
	s := newAddOnsScene(t)
	given := func() bool {
		t.Helper()
		got := s.run("hub", "init", "--context", "spoke", "--dry-run", "--version", "v0.1.0")
		require.Zero(t, got.code, got.err)
		for _, document := range strings.Split(got.out, "---\n") {
			if strings.Contains(document, "kind: ClusterRoleBinding\n") && strings.Contains(
				document, "  name: open-cluster-management:cluster-manager-addon-manager:agents\nroleRef",
			) {
				return strings.Contains(document, "addon-manager-controller-sa")
			}
		}
		require.Fail(t, "there is no binding", got.out)
		return false
	}
	require.True(t, given(), "the default of a new hub")
	for _, rights := range []string{"narrow", "default"} {
		got := s.run("hub", "init", "--context", "spoke", "--wait=false", "--version", "v0.1.0", "--addon-rights", rights)
		require.Zero(t, got.code, got.err)
		require.Equal(t, rights == "default", given(), rights)
	}
	got := s.run("hub", "init", "--context", "spoke", "--addon-rights", "none")
	require.Equal(t, 2, got.code, got.err)
}

func TestAddOnsAreCompleted(t *testing.T) {
	s := newAddOnsScene(t)
	for _, command := range []string{"enable", "disable", "status", "list", "delete", "create"} {
		got := s.run("__complete", "addon", command, "--context", "hub", "m")
		require.Contains(t, got.out, "mesh\nmetrics\n:4", command)
		require.NotContains(t, got.out, "logs", command)
	}
	require.Contains(t, s.run("__complete", "addon", "create", "x", "--context", "hub", "--render", "").out, "cluster1\ncluster2\n")
}
