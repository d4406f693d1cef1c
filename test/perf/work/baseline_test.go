// SPDX-License-Identifier: Apache-2.0

//go:build perf && baseline

package work

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
)

// Flags of the baseline mode, which drives an agent that runs already, ours or any other:
//
//	go test -tags perf,baseline -v -run AnyAgent ./test/perf/work -args -hub=HUB.kubeconfig -spoke=SPOKE.kubeconfig -cluster=c1
var (
	hubFlag     = flag.String("hub", "", "kubeconfig of the hub of a running agent")
	spokeFlag   = flag.String("spoke", "", "kubeconfig of the cluster of a running agent")
	clusterFlag = flag.String("cluster", cluster, "name of that cluster")
	pidFlag     = flag.Int("agent-pid", 0, "process of that agent, if it runs on this machine")
)

// TestWhatWorksCostAnyAgent measures an agent that runs already and prints its figures, to
// be compared with another one's on the same machine.
func TestWhatWorksCostAnyAgent(t *testing.T) {
	require.NotEmpty(t, *hubFlag, "give the hub of an agent: -args -hub=KUBECONFIG -spoke=KUBECONFIG -cluster=NAME")
	require.NotEmpty(t, *spokeFlag, "give the cluster of an agent: -args -hub=KUBECONFIG -spoke=KUBECONFIG -cluster=NAME")
	p := &probe{t: t, cluster: *clusterFlag, pid: *pidFlag}
	p.hubConfig, p.hub = configured(t, *hubFlag)
	p.spokeConfig, p.spoke = configured(t, *spokeFlag)
	p.create("warm", 1, 1, true)
	p.remove("warm", 1)
	p.measure(budget.Sized(200, 60), 1)
}

// configured returns the client of a kubeconfig, without rate limit.
func configured(t testing.TB, file string) (*rest.Config, dynamic.Interface) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", file)
	require.NoError(t, err)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return config, client
}
