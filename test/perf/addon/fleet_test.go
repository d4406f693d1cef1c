// SPDX-License-Identifier: Apache-2.0

//go:build perf

package addon

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/audit"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/scene"
)

const (
	// path of the budgets.
	path = "../addon.yaml"
	// addOns is how many add-ons each cluster has in the end.
	addOns = 5
	// window is how long the hub is observed at rest, which starts after a time quiet
	// without requests. idle is how long it rests before its memory is read: the runtime
	// returns freed memory within minutes.
	window, quiet, idle = 15 * time.Second, 3 * time.Second, 3 * time.Minute
)

var (
	definitions = addonv1alpha1.GroupVersion.WithResource("clustermanagementaddons")
	templates   = addonv1alpha1.GroupVersion.WithResource("addontemplates")
	configs     = addonv1alpha1.GroupVersion.WithResource("addondeploymentconfigs")
)

// run is a hub with a fleet of clusters.
type run struct {
	*scene.Scene
	t        *testing.T
	clusters int
}

// prepare creates an add-on that no cluster has yet: template, configuration and
// definition.
func (s *run) prepare(name string) {
	s.t.Helper()
	ctx := s.t.Context()
	require.NoError(s.t, s.Create(ctx, templates, `{"apiVersion":"addon.open-cluster-management.io/v1alpha1",
		"kind":"AddOnTemplate","metadata":{"name":%[1]q},"spec":{"addonName":%[1]q,
		"agentSpec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":%[1]q},"data":{"value":"{{LEVEL}}"}},
		{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"default","name":%[1]q},"spec":{"selector":{"matchLabels":{"app":%[1]q}},
		"template":{"metadata":{"labels":{"app":%[1]q}},"spec":{"containers":[{"name":"agent","image":"example.com/agent:v1"}]}}}}]}}}}`, name))
	require.NoError(s.t, s.Create(ctx, configs, `{"apiVersion":"addon.open-cluster-management.io/v1alpha1",
		"kind":"AddOnDeploymentConfig","metadata":{"namespace":"default","name":%q},
		"spec":{"agentInstallNamespace":"default","customizedVariables":[{"name":"LEVEL","value":"one"}]}}`, name))
	require.NoError(s.t, s.Create(ctx, definitions, `{"apiVersion":"addon.open-cluster-management.io/v1alpha1",
		"kind":"ClusterManagementAddOn","metadata":{"name":%[1]q,
		"annotations":{"addon.open-cluster-management.io/lifecycle":"addon-manager"}},"spec":{"addOnMeta":{},"supportedConfigs":[
		{"group":"addon.open-cluster-management.io","resource":"addontemplates","defaultConfig":{"name":%[1]q}},
		{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs"}],
		"installStrategy":{"type":"Manual"}}}`, name))
}

// selector returns the label selector of the works of an add-on.
func selector(name string) string { return addonv1alpha1.LabelAddOnName + "=" + name }

// install installs an add-on on all clusters, and returns how long it takes until each
// has its work.
func (s *run) install(name string) time.Duration {
	s.t.Helper()
	return s.Delivered(selector(name), s.clusters, "one", func() {
		s.patch(name, `{"spec":{"installStrategy":{"type":"Placements","placements":[{"namespace":"default","name":"all","rolloutStrategy":{"type":"All"},
			"configs":[{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs","namespace":"default","name":%q}]}]}}}`, name)
	})
}

func (s *run) patch(name, format string, args ...any) {
	s.t.Helper()
	_, err := s.Dyn.Resource(definitions).Patch(s.t.Context(), name, types.MergePatchType, fmt.Appendf(nil, format, args...), metav1.PatchOptions{})
	require.NoError(s.t, err)
}

// change gives the add-on another configuration, and returns how long it takes until
// each cluster's work has it.
func (s *run) change(name, level string) time.Duration {
	s.t.Helper()
	return s.Delivered(selector(name), s.clusters, level, func() {
		_, err := s.Dyn.Resource(configs).Namespace("default").Patch(s.t.Context(), name, types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"customizedVariables":[{"name":"LEVEL","value":%q}]}}`, level), metav1.PatchOptions{})
		require.NoError(s.t, err)
	})
}

// worked logs the CPU time of the hub in a phase, and returns its total.
func (s *run) worked(phase string, before time.Duration) time.Duration {
	s.t.Helper()
	all := budget.CPUTime(s.t, s.PID())
	s.t.Logf("%s: the hub worked for %s at %s", phase, all-before, time.Now().Format(time.TimeOnly))
	return all
}

func TestAddOnsReachAThousandClustersWithinTheirBudgets(t *testing.T) {
	b := budget.Open(t, path)
	s := &run{Scene: scene.New(t, audit.OnlyResources, audit.NotReads, audit.NotLeases), t: t, clusters: budget.Sized(1000, 300)}
	puts := budget.LeasePuts(t, s.Config)
	s.Fleet(s.clusters)
	s.Settle(quiet)
	var before memory.Usage
	if !testing.Short() {
		<-time.After(idle)
		before = s.Memory()
	}

	began := s.Mark()
	s.prepare("first")
	worked := s.worked("before", 0)
	b.Time("installed", []time.Duration{s.install("first")}, puts)
	worked = s.worked("until installed", worked)
	s.Report(selector("first"), s.clusters)
	s.Settle(quiet)
	worked = s.worked("until settled", worked)
	b.Count("writesInstalled", s.Sum("installed", s.Asked(began))/float64(s.clusters))
	began = s.Mark()
	b.Time("configured", []time.Duration{s.change("first", "two")}, puts)
	worked = s.worked("until configured", worked)
	s.Report(selector("first"), s.clusters)
	s.Settle(quiet)
	s.worked("until settled", worked)
	b.Count("writesConfigured", s.Sum("configured", s.Asked(began))/float64(s.clusters))

	if !testing.Short() {
		for i := 1; i < addOns; i++ {
			name := fmt.Sprintf("more-%d", i)
			s.prepare(name)
			t.Logf("%s: installed in %s", name, s.install(name))
			s.Report(selector(name), s.clusters)
		}
		s.Settle(quiet)
		<-time.After(idle)
		b.Memory("memory", s.Memory().Since(before))
	}
	began = s.Mark()
	<-time.After(window)
	b.Count("writesAtRest", s.Sum("at rest", s.Asked(began)))
	b.Complete()
}
