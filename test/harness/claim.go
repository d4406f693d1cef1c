// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"strings"
	"sync"
	"testing"
)

// claims holds which test has which name of a cluster, by kubeconfig and name.
var claims sync.Map

// Claim gives a name on this cluster to the test that asks first, with its
// subtests, for as long as the process runs. Another test that asks for it fails:
// on a shared cluster the two would meddle with each other, now and then, in an
// order that nobody chose.
func (c *Cluster) Claim(t testing.TB, name string) {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	if holder, _ := claims.LoadOrStore(c.Kubeconfig+"\x00"+name, test); holder != test {
		t.Fatalf("the name %s on cluster %s is that of %s: take another one", name, c.Name, holder)
	}
}
