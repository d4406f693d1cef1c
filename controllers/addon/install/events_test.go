// SPDX-License-Identifier: Apache-2.0

package install

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// pass runs one pass of the loop, with the writes that succeed, and returns its events.
func (n *news) pass(index []instance.AddOn, create, adopt, remove []string, failure error, failing ...string) string {
	n.dropSeen("metrics", index)
	var plan reconcile.Plan
	fails := strings.Join(failing, " ")
	for _, c := range create {
		plan.Writes = append(plan.Writes, reconcile.Apply{Object: object(c, "metrics")})
	}
	for _, c := range adopt {
		o := object(c, "metrics")
		o.UID = types.UID("a-" + c)
		plan.Writes = append(plan.Writes, reconcile.Apply{Object: o})
	}
	for _, a := range reconcile.Of[reconcile.Apply](plan.Writes) {
		if c := a.Object.GetNamespace(); !strings.Contains(fails, c) {
			live := &unstructured.Unstructured{}
			live.SetUID(types.UID("a-" + c))
			n.recordWrite(reconcile.Target{Namespace: c, Name: "metrics"}, live)
		}
	}
	for _, c := range remove {
		at := reconcile.Target{Namespace: c, Name: "metrics", UID: types.UID("a-" + c)}
		plan.Writes = append(plan.Writes, reconcile.Remove{Target: at})
		if !strings.Contains(fails, c) {
			n.recordWrite(at, nil)
		}
	}
	var out []string
	for _, e := range n.events("metrics", plan, failure) {
		out = append(out, e.Type+" "+e.Reason+": "+e.Message)
	}
	return strings.Join(out, "\n")
}

func TestEventsCountClusters(t *testing.T) {
	n, none := newNews(), []string(nil)
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf("c%03d", i))
	}
	require.Equal(
		t, "Normal Installed: Installed on 1000 clusters: c000, c001, c002, c003, c004 and 995 more",
		n.pass(nil, many, none, none, nil),
	)
	require.Empty(t, n.pass([]instance.AddOn{owned("c000")}, many[1:], none, none, nil), "the index is late")
	all := make([]instance.AddOn, 0, len(many))
	for _, c := range many {
		all = append(all, owned(c))
	}
	require.Empty(t, n.pass(all, none, many, none, nil), "adopting is not installing")
	require.Empty(t, n.of["metrics"].toldMade, "nothing is recorded that the index already shows")
	require.Empty(t, n.of["metrics"].made)

	require.Equal(t, "Normal Removed: Removed from 2 clusters: c000, c001", n.pass(all, none, none, many[:2], nil))
	require.Empty(t, n.pass(all, none, none, many[:2], nil), "the index is late")
	require.Equal(
		t, "Normal Installed: Installed on 1 cluster: c000", n.pass(all[2:], many[:1], none, none, nil), "once more",
	)
	leaving := with(owned("c002"), func(a *instance.AddOn) { a.Deleting = true })
	require.Equal(t, "Normal Removed: Removed from 1 cluster: c002", n.pass(all, none, none, many[2:3], nil))
	require.Empty(t, n.pass([]instance.AddOn{leaving}, none, none, none, nil))
	require.Empty(t, n.of["metrics"].toldGone)

	require.Empty(t, n.pass(nil, none, none, none, nil), "there are none without changes")
	n.forget("metrics")
	require.Empty(t, n.of)
	require.Empty(t, n.pass(nil, none, none, none, nil))
	require.Empty(t, n.of)
}

func TestEventsOfFailures(t *testing.T) {
	n, none := newNews(), []string(nil)
	failure := errors.New("applying c2/metrics: there is no namespace c2\napplying c3/metrics: there is no namespace c3")
	const failed = "Warning InstallFailed: applying c2/metrics: there is no namespace c2; applying c3/metrics: there is no namespace c3"
	require.Equal(
		t, "Normal Installed: Installed on 1 cluster: c1\n"+failed,
		n.pass(nil, []string{"c1", "c2", "c3"}, none, none, failure, "c2", "c3"),
	)
	require.Empty(t, n.pass(nil, []string{"c1", "c2", "c3"}, none, none, failure, "c2", "c3"), "once")
	require.Equal(
		t, "Warning InstallFailed: another",
		n.pass([]instance.AddOn{owned("c1")}, []string{"c2"}, none, none, errors.New("another"), "c2"),
	)
	require.Equal(
		t, "Normal Installed: Installed on 1 cluster: c2",
		n.pass([]instance.AddOn{owned("c1")}, []string{"c2"}, none, none, nil),
	)
	require.Equal(t, failed, n.pass(nil, none, none, none, failure), "it worked in between")
	n = newNews()
	require.Equal(t, failed, n.pass(nil, []string{"c2"}, none, none, failure, "c2"), "nothing else is known of the add-on")
}
