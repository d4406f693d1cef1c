// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"strings"
	"sync"
	"testing"
)

// claims maps kubeconfig and name to the test that has claimed the name.
var claims sync.Map

// Claim reserves a name on this cluster for the first test that asks, and its subtests,
// for the life of the process, or of a Fresh cluster's use. Another test that asks for it fails: on a shared cluster
// the two would disturb each other, in an order that varies.
func (c *Cluster) Claim(t testing.TB, name string) {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	if holder, _ := claims.LoadOrStore(c.Kubeconfig+"\x00"+name, test); holder != test {
		t.Fatalf("the name %s on cluster %s is that of %s: take another one", name, c.Name, holder)
	}
}

// unclaim releases all names of this cluster, which no longer has what they named.
func (c *Cluster) unclaim() {
	claims.Range(func(key, _ any) bool {
		if strings.HasPrefix(key.(string), c.Kubeconfig+"\x00") {
			claims.Delete(key)
		}
		return true
	})
}
