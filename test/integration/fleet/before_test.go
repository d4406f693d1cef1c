// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// TestBeforeAnInstallation plants what keeps a hub from being installed and a cluster from
// joining, types what check --pre prints, and sees it gone.
func TestBeforeAnInstallation(t *testing.T) {
	t.Parallel()
	hub, spoke := harness.Fresh(t, "hub"), harness.Fresh(t, "spoke")
	contexts(t, map[string]*harness.Cluster{"hub": hub, "spoke": spoke})
	before := []string{"--pre", "hub", "--context", "hub", "--skip", "OCM0204"}
	require.Empty(t, looked(t, before...))
	require.Equal(t, "OCM0204", looked(t, "--pre", "hub", "--context", "hub")["OCM0204"].Code, "its address is that of this machine")

	t.Run("rights", func(t *testing.T) { rightsBefore(t, "OCM0212", "hub", before) })
	t.Run("another hub", func(t *testing.T) { othersBefore(t, hub, before) })
	t.Run("what is being deleted", func(t *testing.T) {
		goesBefore(t, hub, "OCM0211", "open-cluster-management-hub", before)
	})
	asHub(t, hub)
	join := []string{"--pre", "join", "--context", "spoke", "--hub-context", "hub"}
	require.Empty(t, looked(t, join...))
	t.Run("rights on the cluster", func(t *testing.T) { rightsBefore(t, "OCM0410", "spoke", join[:4]) })
	t.Run("what is being deleted on the cluster", func(t *testing.T) {
		goesBefore(t, spoke, "OCM0409", "open-cluster-management-agent", join, "spoke", "--context", "spoke")
	})
	t.Run("the hub is none", func(t *testing.T) {
		f := looked(t, "--pre", "join", "--context", "hub", "--hub-context", "spoke")["OCM0202"]
		require.Contains(t, f.Title, "is not a hub")
		require.Contains(t, f.Fix, "kubectl ocm hub init --context spoke")
	})
	t.Run("another agent", func(t *testing.T) { agentBefore(t, spoke, join) })
	t.Run("a joined cluster", func(t *testing.T) { joinedBefore(t, join) })
}

// rightsBefore checks as a user without rights, and types the grant as an administrator.
func rightsBefore(t *testing.T, code, name string, words []string) {
	words = append([]string{"--as", "newcomer"}, words...)
	f := found(t, code, words...)
	require.Equal(t, "you may not install it", f.Title)
	require.Contains(t, f.Cause, "you lack: get cluster")
	grant, remark, _ := strings.Cut(f.Fix, "      ")
	require.Equal(t, "kubectl create clusterrolebinding kubectl-ocm-installer --clusterrole=cluster-admin --user=newcomer", grant)
	require.Equal(t, "as an administrator of context "+name, remark)
	typeLine(t, grant+" --context "+name)
	eventually(t, func() bool { return len(looked(t, append(words, "--skip", "OCM0204")...)) == 0 }, patience, 200*time.Millisecond)
	typeLine(t, "kubectl delete clusterrolebinding kubectl-ocm-installer --context "+name)
}

// container is the spec of a Deployment of another distribution.
func container(name, image string) map[string]any {
	mark := map[string]any{"app": name}
	return map[string]any{"spec": map[string]any{"replicas": int64(1), "selector": map[string]any{"matchLabels": mark}, "template": map[string]any{
		"metadata": map[string]any{"labels": mark},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": name, "image": image, "command": []any{"/" + name}}}}}}}
}

func othersBefore(t *testing.T, hub *harness.Cluster, words []string) {
	client := hub.Dynamic(t)
	create := func(resource schema.GroupVersionResource, u *unstructured.Unstructured) {
		t.Helper()
		_, err := client.Resource(resource).Namespace(u.GetNamespace()).Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	create(namespaces, object("v1", "Namespace", "", "open-cluster-management", nil))
	create(deployments, object("apps/v1", "Deployment", "open-cluster-management", "cluster-manager", container("operator", "example.com/operator:v1")))
	f := found(t, "OCM0210", words...)
	require.Equal(t, "deployment open-cluster-management/cluster-manager runs example.com/operator:v1", f.Cause)
	require.Equal(t, "kubectl ocm hub init --adopt --plan --context hub      shows what taking it over changes", f.Fix)
	typeLine(t, "kubectl delete deployment cluster-manager -n open-cluster-management --context hub")
	require.Empty(t, looked(t, words...))
}

// goesBefore plants a namespace and a definition that are being deleted. Their finalizers go while
// the printed line waits. A plain check, if there is one of such a cluster, says so, too.
func goesBefore(t *testing.T, c *harness.Cluster, code, namespace string, words []string, plain ...string) {
	client := c.Dynamic(t)
	kinds, err := crd.Hub()
	require.NoError(t, err)
	definition := kinds[0]
	unstructured.RemoveNestedField(definition.Object, "spec", "conversion")
	going := func(resource schema.GroupVersionResource, u *unstructured.Unstructured) finding {
		t.Helper()
		u.SetFinalizers([]string{"example.com/hold"})
		_, err := client.Resource(resource).Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
		require.NoError(t, client.Resource(resource).Delete(t.Context(), u.GetName(), metav1.DeleteOptions{}))
		return found(t, code, words...)
	}
	f := going(definitions, definition)
	require.Equal(t, "definition "+definition.GetName()+" is being deleted", f.Title)
	if len(plain) > 0 {
		require.Equal(t, f.Title, found(t, code, plain...).Title)
	}
	patched(t, c, definitions, "", definition.GetName(), `{"metadata":{"finalizers":null}}`)
	typeLine(t, f.Fix)
	require.NotContains(t, looked(t, words...), code)
	f = going(namespaces, object("v1", "Namespace", "", namespace, nil))
	require.Contains(t, f.Title, "namespace "+namespace+" is being deleted")

	// A wait tells what it waits for, and ends when that is gone.
	released := &releasing{text: code + " namespace " + namespace, do: func() {
		patched(t, c, namespaces, "", namespace, `{"metadata":{"finalizers":null}}`)
	}}
	ctx, cancel := context.WithTimeout(t.Context(), atMost)
	defer cancel()
	var out bytes.Buffer
	s := app.Streams{In: strings.NewReader(""), Out: &out, Err: released, Clock: clock.RealClock{}, Getenv: func(string) string { return "" }}
	exit := app.Run(ctx, s, append([]string{"kubectl-ocm", "--kubeconfig", configOf(t), "check", "--wait", patience.String()}, words...))
	require.Zero(t, exit, "%s\n%s", out.String(), released.kept.String())
	require.Nil(t, released.do, "it has told what it waits for")
	typeLine(t, f.Fix)
}

// releasing is a stream that calls do once text has been written to it.
type releasing struct {
	kept bytes.Buffer
	text string
	do   func()
}

func (r *releasing) Write(p []byte) (int, error) {
	n, err := r.kept.Write(p)
	if r.do != nil && strings.Contains(r.kept.String(), r.text) {
		r.do()
		r.do = nil
	}
	return n, err
}

func agentBefore(t *testing.T, spoke *harness.Cluster, words []string) {
	client := spoke.Dynamic(t)
	_, err := client.Resource(namespaces).Create(t.Context(), object("v1", "Namespace", "", "open-cluster-management-agent", nil), metav1.CreateOptions{})
	require.NoError(t, err)
	foreign := object("apps/v1", "Deployment", "open-cluster-management-agent", "klusterlet-work-agent", container("agent", "example.com/work:v1"))
	_, err = client.Resource(deployments).Namespace(foreign.GetNamespace()).Create(t.Context(), foreign, metav1.CreateOptions{})
	require.NoError(t, err)
	f := found(t, "OCM0408", words...)
	require.Equal(t, "deployment open-cluster-management-agent/klusterlet-work-agent runs example.com/work:v1", f.Cause)
	require.Equal(t, "kubectl ocm join <name> --adopt --plan --context spoke --hub-context hub      shows what taking it over changes", f.Fix)
	typeLine(t, "kubectl delete deployment klusterlet-work-agent -n open-cluster-management-agent --context spoke")
	require.Empty(t, looked(t, words...))
}

// joinedBefore joins the cluster: it may join its hub again, and no other.
func joinedBefore(t *testing.T, words []string) {
	require.Zero(t, run(t, "join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--wait=false").code)
	require.Empty(t, looked(t, words...), "it may be repeated")
	f := found(t, "OCM0408", words[:4]...)
	require.Contains(t, f.Title, "is joined already")
	line, _, _ := strings.Cut(f.Fix, "      ")
	require.Equal(t, "kubectl ocm unjoin cluster1 --context spoke", line)
	require.Zero(t, run(t, append(strings.Fields(line)[2:], "--force", "--yes")...).code, "no agent runs here that could leave by itself")
	require.Empty(t, looked(t, words[:4]...))
}
