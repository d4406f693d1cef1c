// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"embed"
	"io/fs"
	"maps"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/values"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

//go:embed all:testdata/agent
var files embed.FS

// instance is an add-on on a cluster that has told its version.
func instance() addonkit.Instance {
	i := addonkit.Instance{
		Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
		AddOn:   &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello"}},
	}
	i.Cluster.Status.Version.Kubernetes = "v1.36.3-gke.1"
	return i
}

// chartOf is the chart of testdata with files of another content; empty ones are left out.
func chartOf(t *testing.T, other map[string]string) Config {
	t.Helper()
	out := fstest.MapFS{}
	err := fs.WalkDir(files, "testdata/agent", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		out[name] = &fstest.MapFile{Data: content}
		return err
	})
	require.NoError(t, err)
	for name, text := range other {
		if delete(out, "testdata/agent/"+name); text != "" {
			out["testdata/agent/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	return Config{Options: addonkit.Options{Name: "hello"}, Files: out, Dir: "testdata/agent"}
}

// named renders a chart and returns its objects by kind and name, and in order.
func named(t *testing.T, c Config, i addonkit.Instance) (map[string]map[string]any, []string, error) {
	t.Helper()
	a, err := New(c)
	require.NoError(t, err)
	objects, err := a.Manifests(t.Context(), i)
	out, order := map[string]map[string]any{}, []string{}
	for _, o := range objects {
		u := o.(*unstructured.Unstructured)
		order = append(order, u.GetKind()+" "+u.GetName())
		out[order[len(order)-1]] = u.Object
	}
	return out, order, err
}

func field(t *testing.T, object map[string]any, path ...string) any {
	t.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	require.NoError(t, err)
	require.True(t, found, "%v", path)
	return value
}

func TestAChartIsRenderedForACluster(t *testing.T) {
	c := chartOf(t, nil)
	c.Namespace = func(context.Context, addonkit.Instance) (string, error) { return "there", nil }
	c.Values = []values.Func{values.Fixed(map[string]any{"replicas": 2, "clusterName": "another"})}
	got, order, err := named(t, c, instance())
	require.NoError(t, err)
	require.Equal(t, []string{"CustomResourceDefinition widgets.example.com", "ServiceAccount hello-agent", "Deployment hello-agent"}, order,
		"definitions first; no notes, no test, no dependency that is switched off, nothing that lookup finds")
	d := got["Deployment hello-agent"]
	require.Equal(t, "there", field(t, d, "metadata", "namespace"))
	require.Equal(t, map[string]any{"cluster": "c1", "mode": "Default", "kubernetes": "v1.36.3-gke.1", "proxy": ""}, field(t, d, "metadata", "annotations"))
	require.EqualValues(t, 2, field(t, d, "spec", "replicas"))
	pod := field(t, d, "spec", "template", "spec").(map[string]any)
	require.Equal(t, "example.com/agent:v1", field(t, pod["containers"].([]any)[0].(map[string]any), "image"))
	require.Equal(t, "hello-hub-kubeconfig", field(t, pod["volumes"].([]any)[0].(map[string]any), "secret", "secretName"))
}

func TestAConfigurationReachesAllCharts(t *testing.T) {
	given, err := values.GlobalFromSpec(addonv1alpha1.AddOnDeploymentConfigSpec{
		CustomizedVariables: []addonv1alpha1.CustomizedVariable{{Name: "image", Value: "example.com/agent:v2"}},
		NodePlacement:       &addonv1alpha1.NodePlacement{NodeSelector: map[string]string{"os": "linux"}},
		ProxyConfig:         addonv1alpha1.ProxyConfig{HTTPProxy: "http://proxy"},
	})
	require.NoError(t, err)
	c := chartOf(t, nil)
	c.Values = []values.Func{values.Fixed(given), values.Fixed(map[string]any{"side": map[string]any{"enabled": true}})}
	got, _, err := named(t, c, instance())
	require.NoError(t, err)
	require.Equal(t, `{"os":"linux"}`, field(t, got["ConfigMap side"], "data", "selector"), "a dependency by its condition, with the globals")
	d := got["Deployment hello-agent"]
	require.Equal(t, map[string]any{"os": "linux"}, field(t, d, "spec", "template", "spec", "nodeSelector"))
	require.Equal(t, "http://proxy", d["metadata"].(map[string]any)["annotations"].(map[string]any)["proxy"])
	require.Equal(t, []any{}, field(t, d, "spec", "template", "spec", "tolerations"), "what the configuration is silent about is the chart's")
	require.Equal(t, "open-cluster-management-agent-addon", field(t, d, "metadata", "namespace"))
}

func TestWhatIsWrongWithAChartIsSaid(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
	for name, tc := range map[string]struct {
		files  map[string]string
		change func(*Config, addonkit.Instance)
		want   string
	}{
		"a hook": {
			files: map[string]string{
				"templates/job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: before, annotations: {helm.sh/hook: pre-install}}\n",
			},
			want: `template agent/templates/job.yaml: Job before is the hook "pre-install" of Helm, which is not supported`,
		},
		"no kind": {
			files: map[string]string{"templates/x.yaml": object + "---\nmetadata: {name: y}\n"},
			want:  "template agent/templates/x.yaml: object 2: ",
		},
		"no YAML": {
			files: map[string]string{"templates/x.yaml": "a: [\nsecret"},
			want:  "template agent/templates/x.yaml: object 1 is not valid YAML after rendering",
		},
		"a definition that is none": {files: map[string]string{"crds/x.yaml": "metadata: {}"}, want: "crds/x.yaml: object 1"},
		"a value that is missing": {files: map[string]string{
			"templates/x.yaml": "a: {{ .Values.absent }}",
		}, change: func(c *Config, _ addonkit.Instance) { c.Strict = true },
			want: "agent/templates/x.yaml:1"},
		"values against the schema": {
			files: map[string]string{"values.schema.json": `{"properties":{"replicas":{"minimum":3}}}`},
			want:  "values don't meet the specifications of the schema",
		},
		"an old cluster": {change: func(_ *Config, i addonkit.Instance) { i.Cluster.Status.Version.Kubernetes = "v1.29.9" },
			want: "chart agent needs Kubernetes >=1.30.0-0, and managed cluster c1 has v1.29.9"},
		"a cluster without a version": {
			change: func(_ *Config, i addonkit.Instance) { i.Cluster.Status.Version.Kubernetes = "" },
			want:   "managed cluster c1 has not reported its Kubernetes version yet",
		},
		"a version that is none": {
			change: func(_ *Config, i addonkit.Instance) { i.Cluster.Status.Version.Kubernetes = "new" },
			want:   `status.version.kubernetes: "new" is not a version`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, i := chartOf(t, tc.files), instance()
			if tc.change != nil {
				tc.change(&c, i)
			}
			_, _, err := named(t, c, i)
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "secret", "of what was rendered nothing is shown")
		})
	}
}

func TestAChartThatIsNoneIsRefusedAtTheStart(t *testing.T) {
	for name, tc := range map[string]struct {
		files  map[string]string
		change func(*Config)
		want   string
	}{
		"no Chart.yaml": {files: map[string]string{"Chart.yaml": ""}, want: "folder testdata/agent: "},
		"no name": {
			files: map[string]string{"Chart.yaml": "apiVersion: v2\nversion: 0.1.0\n"},
			want:  "chart.metadata.name is required",
		},
		"values of no shape":    {files: map[string]string{"values.yaml": "- a\n"}, want: "values.yaml"},
		"no files":              {change: func(c *Config) { c.Files = nil }, want: "files: must be set"},
		"no such folder":        {change: func(c *Config) { c.Dir = "absent" }, want: "reading the chart of the add-on"},
		"no name of the add-on": {change: func(c *Config) { c.Options.Name = "" }, want: "options of the add-on"},
	} {
		t.Run(name, func(t *testing.T) {
			c := chartOf(t, tc.files)
			if tc.change != nil {
				tc.change(&c)
			}
			_, err := New(c)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// What one cluster switches on must not be on for another, also at the same time.
func TestClustersDoNotMeetInAChart(t *testing.T) {
	with := map[string]any{"side": map[string]any{"enabled": true}}
	c := chartOf(t, nil)
	c.Values = []values.Func{func(_ context.Context, i addonkit.Instance) (map[string]any, error) {
		if i.AddOn.Namespace == "c1" {
			return maps.Clone(with), nil
		}
		return nil, nil
	}}
	a, err := New(c)
	require.NoError(t, err)
	var group sync.WaitGroup
	counts := make([]int, 20)
	for n := range counts {
		i := instance()
		if n%2 == 1 {
			i.AddOn.Namespace = "c2"
		}
		group.Go(func() {
			if objects, err := a.Manifests(t.Context(), i); err == nil {
				counts[n] = len(objects)
			}
		})
	}
	group.Wait()
	for n, count := range counts {
		require.Equal(t, 4-n%2, count)
	}
	require.Equal(t, map[string]any{"side": map[string]any{"enabled": true}}, with)
}
