// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// TestClustersAreLabelledAndTaintedByCommand: admission takes what the commands send, the hub
// gives new taints their time, and those that were there keep theirs.
func TestClustersAreLabelledAndTaintedByCommand(t *testing.T) {
	s := sharedHub(t)
	dyn, _ := s.bootstrap(t)
	settled(t, func() error { return create(dyn, cluster("edited")) })
	s.await(t, "edited", "is unreachable", tainted(clusterv1.TaintUnreachable))
	run := func(line, want string) {
		t.Helper()
		code, said := s.ocm(t, line)
		require.Zero(t, code)
		require.Contains(t, said, want)
	}
	run("cluster label edited env=prod tier=gold", "managedcluster/edited labelled")
	run("cluster label edited env=prod tier=gold", "managedcluster/edited unchanged")
	run("cluster label edited tier-", "managedcluster/edited labelled")
	mc := s.get(t, "edited")
	require.Equal(t, "prod", mc.Labels["env"])
	require.NotContains(t, mc.Labels, "tier")

	run("cluster taint edited gpu=true:PreferNoSelect --dry-run=server", "configured (server dry run)")
	run("cluster taint edited gpu=true:PreferNoSelect", "managedcluster/edited tainted")
	first := s.await(t, "edited", "has both", tainted(clusterv1.TaintUnreachable, "gpu")).Spec.Taints
	require.NotNil(t, first[1].TimeAdded)
	run("cluster cordon edited", "managedcluster/edited cordoned")
	run("cluster cordon edited", "managedcluster/edited unchanged")
	cordoned := s.await(t, "edited", "is cordoned too", tainted(clusterv1.TaintUnreachable, "gpu", clusterv1.TaintCordoned)).Spec.Taints
	require.Equal(t, first, cordoned[:2], "the time of the others stays")
	require.Equal(t, clusterv1.TaintEffectNoSelect, cordoned[2].Effect)
	run("cluster cordon edited --keep", "managedcluster/edited cordoned")
	require.Equal(t, clusterv1.TaintEffectNoSelectIfNew, s.get(t, "edited").Spec.Taints[2].Effect)
	run("cluster uncordon edited", "managedcluster/edited uncordoned")
	run("cluster taint edited gpu=false:PreferNoSelect --overwrite", "managedcluster/edited tainted")
	run("cluster taint edited gpu-", "managedcluster/edited tainted")
	require.True(t, tainted(clusterv1.TaintUnreachable)(s.get(t, "edited")))
	run("cluster get edited", "cluster.open-cluster-management.io/unreachable:NoSelect")
	run("cluster tree edited", "ManagedCluster/edited")
}

// TestSeveralPeopleTaintAtOnce: no taint is lost, although each list is written as a whole.
func TestSeveralPeopleTaintAtOnce(t *testing.T) {
	s := sharedHub(t)
	dyn, _ := s.bootstrap(t)
	settled(t, func() error { return create(dyn, cluster("contended")) })
	s.await(t, "contended", "is unreachable", tainted(clusterv1.TaintUnreachable))
	var group sync.WaitGroup
	codes := make([]int, 3)
	for i := range codes {
		group.Go(func() { codes[i], _ = s.ocm(t, fmt.Sprintf("cluster taint contended key%d:PreferNoSelect", i)) })
	}
	group.Wait()
	require.Equal(t, []int{0, 0, 0}, codes)
	require.Len(t, s.get(t, "contended").Spec.Taints, 1+len(codes))
}

// TestManifestsAreJudgedByTheHub: its admission refuses what it would refuse later, and nothing
// is stored.
func TestManifestsAreJudgedByTheHub(t *testing.T) {
	s := sharedHub(t)
	file := filepath.Join(t.TempDir(), "placement.yaml")
	const placement = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\nmetadata: {name: judged, namespace: default}\n"
	require.NoError(t, os.WriteFile(file, []byte(placement+"spec: {}\n"), 0o600))
	code, said := s.ocm(t, "check -f "+file)
	require.Zero(t, code)
	require.Contains(t, said, "the hub takes Placement default/judged")
	for text, want := range map[string]string{
		"spec: {numberOfClusters: many}\n":                                "numberOfClusters",
		"spec: {tolerations: [{operator: Exists, value: x, key: gpu}]}\n": "tolerations",
	} {
		require.NoError(t, os.WriteFile(file, []byte(placement+text), 0o600))
		code, said = s.ocm(t, "check -f "+file)
		require.Equal(t, 3, code)
		require.Contains(t, said, "OCM0602 the hub refuses Placement default/judged")
		require.Contains(t, said, want)
	}
	code, _ = s.ocm(t, "placement explain judged -n default")
	require.Equal(t, 1, code, "it was not stored")
}
