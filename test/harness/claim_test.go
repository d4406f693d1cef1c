// SPDX-License-Identifier: Apache-2.0

package harness_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// namedTest is a test with another name that records whether it failed.
type namedTest struct {
	testing.TB
	name   string
	failed bool
}

func (n *namedTest) Name() string          { return n.name }
func (n *namedTest) Fatalf(string, ...any) { n.failed = true }

func TestANameOfASharedClusterIsThatOfOneTest(t *testing.T) {
	one, other := &harness.Cluster{Kubeconfig: t.TempDir()}, &harness.Cluster{Kubeconfig: t.TempDir()}
	first := &namedTest{TB: t, name: "TestFirst"}
	one.Claim(first, "prod1")
	one.Claim(first, "prod1")
	inner := &namedTest{TB: t, name: "TestFirst/inner"}
	one.Claim(inner, "prod1")
	second := &namedTest{TB: t, name: "TestSecond"}
	one.Claim(second, "prod10")
	other.Claim(second, "prod1")
	require.False(t, first.failed || inner.failed || second.failed)
	one.Claim(second, "prod1")
	require.True(t, second.failed)
}

func TestNamesAreFreeAgainWhenAClusterIsBroughtBack(t *testing.T) {
	for _, name := range []string{"TestFirst", "TestSecond"} {
		t.Run(name, func(t *testing.T) {
			test := &namedTest{TB: t, name: name}
			harness.Fresh(t, "claimed").Claim(test, "prod1")
			require.False(t, test.failed)
		})
	}
}
