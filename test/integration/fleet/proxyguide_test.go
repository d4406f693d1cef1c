// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/origin"
	library "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// TestTheProxyGuide types every block of docs/guides/proxy.md, with the real processes of the hub and of the agent.
func TestTheProxyGuide(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guides/proxy.md")
	require.NoError(t, err)
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	hub := harness.FreshWithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")})
	spoke := harness.FreshWithNode(t, "cluster1", map[string]string{"ocm-agent": harness.Program(t, "controllers/ocm-agent")})
	kubeconfig(t, hub, spoke)
	config, err := clientcmd.LoadFromFile(configOf(t))
	require.NoError(t, err)
	ann := config.AuthInfos["hub"].DeepCopy()
	ann.Impersonate = "ann"
	config.AuthInfos["ann"], config.Contexts["ann"] = ann, &clientcmdapi.Context{Cluster: "hub", AuthInfo: "ann"}
	require.NoError(t, clientcmd.WriteToFile(*config, configOf(t)))
	r := &reachable{hub: hub, kubectl: binaries.Kubectl, memory: t.TempDir()}
	require.Zero(t, run(t, "hub", "init", "--context", "hub", "--timeout", "5m").code)
	require.Zero(t, run(t, "join", "cluster1", "--context", "cluster1", "--hub-context", "hub", "--accept", "--timeout", "5m").code)
	require.Equal(t, 6, r.runs(t, "", "health", "--context", "hub").code, "the gate is off until somebody turns it on")

	asAddOn(t, hub, spoke)
	typed := 0
	for _, block := range regexp.MustCompile("(?s)\n```([a-z]*)\n(.*?)```").FindAllStringSubmatch(string(guide), -1) {
		if block[1] != "" {
			continue // a manifest
		}
		for line := range strings.Lines(block[2]) {
			r.entered(t, strings.TrimSpace(line), typed)
			typed++
		}
	}
	require.Equal(t, 24, typed)
	until(t, func() error {
		if got := r.runs(t, "", "health", "--context", "hub"); got.code != 6 {
			return errors.New("the gate is still on: " + got.out + got.err)
		}
		return nil
	})
}

// asAddOn creates the account of the guide as the agent of the add-on managed-serviceaccount does.
func asAddOn(t *testing.T, hub, spoke *harness.Cluster) {
	t.Helper()
	account := object("v1", "ServiceAccount", "open-cluster-management-agent-addon", "robot", nil)
	labels, annotations := origin.Marks(origin.Hub(hub.Config.Host))
	account.SetLabels(labels)
	account.SetAnnotations(annotations)
	_, err := spoke.Dynamic(t).Resource(library.ServiceAccounts).Namespace(account.GetNamespace()).Create(t.Context(), account, metav1.CreateOptions{})
	require.NoError(t, err)
}

// entered types one line of the guide, and waits where the guide says that it takes a moment.
func (r *reachable) entered(t *testing.T, line string, number int) {
	t.Helper()
	words := strings.Fields(line)
	if strings.HasPrefix(line, "kubectl get --raw") {
		r.asked(t, words)
		return
	}
	if strings.HasPrefix(line, "kubectl ocm proxy service monitoring/") {
		got := r.runs(t, "", words[3:]...)
		require.Equal(t, 1, got.code)
		require.Contains(t, got.err, "cause: cluster cluster1 has no Service monitoring/http:prometheus:9090", "this cluster has none")
		return
	}
	if !strings.HasPrefix(line, "kubectl ocm proxy") {
		typeLine(t, line)
		return
	}
	if number == 3 {
		refused := r.runs(t, "", words[3:]...)
		require.Equal(t, 1, refused.code)
		require.Contains(t, refused.err, `cannot get resource "managedclusters/proxy"`)
		return
	}
	want := ""
	for words, text := range map[string]string{
		"ann auth whoami": `Username +ann\n`,
		"--as-sa robot":   `Username +` + robot + `\n|context/ann/cluster1/robot (configured|unchanged)`,
		"health":          `cluster1   on      connected   ok`,
		"service -c":      `monitoring +prometheus +9090 +http\n`,
		"get configmaps":  `CLUSTER +NAME.*\ncluster1 +kube-root-ca.crt`,
	} {
		if strings.Contains(line, words) {
			want = text
		}
	}
	until(t, func() error { // a tunnel is opened and told, a right counts
		got := r.runs(t, "", words[3:]...)
		if got.code != 0 || !regexp.MustCompile(want).MatchString(got.out) {
			return fmt.Errorf("%s should give %s: exit %d\n%s%s", line, want, got.code, got.out, got.err)
		}
		return nil
	})
	require.NoFileExists(t, filepath.Join(r.memory, "cluster1"))
}

// asked asks for a Service that the cluster exposes, but does not have: what the cluster says of it has come all
// the way.
func (r *reachable) asked(t *testing.T, words []string) {
	t.Helper()
	until(t, func() error { // a right counts, and the agent reads the list
		command := exec.CommandContext(t.Context(), r.kubectl, words[1:]...)
		command.Env = environment(t)
		if said, err := command.CombinedOutput(); err == nil || !strings.Contains(string(said), "cluster cluster1 has no Service monitoring/http:prometheus:9090") {
			return fmt.Errorf("%s: %s %w", strings.Join(words, " "), said, err)
		}
		return nil
	})
}
