// SPDX-License-Identifier: Apache-2.0

package serviceaccount_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// person is a user with a kubeconfig for both clusters.
type person struct{ kubeconfig string }

func (s *scene) person(t *testing.T) person {
	t.Helper()
	merged := clientcmdapi.NewConfig()
	for name, c := range map[string]*harness.Cluster{"hub": s.hub, "spoke": s.spoke} {
		one, err := clientcmd.LoadFromFile(c.Kubeconfig)
		require.NoError(t, err)
		current := one.Contexts[one.CurrentContext]
		merged.Clusters[name], merged.AuthInfos[name] = one.Clusters[current.Cluster], one.AuthInfos[current.AuthInfo]
		merged.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	p := person{filepath.Join(t.TempDir(), "kubeconfig")}
	require.NoError(t, clientcmd.WriteToFile(*merged, p.kubeconfig))
	return p
}

// TestMain runs the plugin once before anything else: the first time, it sets the logger of the
// client libraries, which these read without a lock whenever they log.
func TestMain(m *testing.M) {
	if out, said, code := plugin(context.Background(), "options"); code != 0 {
		fmt.Fprintln(os.Stderr, out, said)
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// plugin runs the plugin in this process.
func plugin(ctx context.Context, words ...string) (out, said string, code int) {
	var stdout, stderr bytes.Buffer
	streams := app.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Clock: clock.RealClock{}, Getenv: func(string) string { return "" }}
	code = app.Run(ctx, streams, append([]string{"kubectl-ocm"}, words...))
	return stdout.String(), stderr.String(), code
}

// ocm runs the plugin with the person's kubeconfig.
func (p person) ocm(t *testing.T, words ...string) (out string, code int) {
	t.Helper()
	out, said, code := plugin(t.Context(), append([]string{"--kubeconfig", p.kubeconfig}, words...)...)
	t.Logf("kubectl ocm %s\nexit %d\n%s%s", strings.Join(words, " "), code, out, said)
	return out, code
}

// finding is what check says of one problem.
type finding struct{ Code, Title, Cause, Fix string }

// finds returns what check says of a ManagedServiceAccount; an empty finding means that all is well.
func (p person) finds(t *testing.T, cluster, name string) finding {
	t.Helper()
	out, _ := p.ocm(t, "check", "cluster", cluster, "--context", "hub", "-o", "json")
	var report struct {
		Areas []struct{ Findings []finding }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &report))
	for _, area := range report.Areas {
		for _, f := range area.Findings {
			if strings.HasPrefix(f.Title, "ManagedServiceAccount "+cluster+"/"+name+": ") {
				return f
			}
		}
	}
	return finding{}
}

// types types the command of a fix.
func (p person) types(t *testing.T, fix string) {
	t.Helper()
	line, _, _ := strings.Cut(fix, "      ")
	words := strings.Fields(strings.ReplaceAll(line, "'", ""))
	require.Equal(t, "kubectl", words[0])
	if words[1] == "ocm" {
		_, code := p.ocm(t, words[2:]...)
		require.Zero(t, code)
		return
	}
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), binaries.Kubectl, words[1:]...)
	command.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig, "HOME="+filepath.Dir(p.kubeconfig))
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, said)
}

// mended waits for a finding, types its fix, and waits until it is gone. Others may be there before: what the agent lacks
// at first is told, too.
func (p person) mended(t *testing.T, cluster, name string, want finding) {
	t.Helper()
	var f finding
	require.True(t, harness.Until(patience, func() bool {
		f = p.finds(t, cluster, name)
		return f.Code == want.Code && strings.Contains(f.Title, want.Title) && strings.Contains(f.Cause, want.Cause)
	}), "check does not find %+v", want)
	require.True(t, strings.HasPrefix(f.Fix, want.Fix), f.Fix)
	p.types(t, f.Fix)
	require.True(t, harness.Until(patience, func() bool { return p.finds(t, cluster, name).Code == "" }), "%s does not mend %s", f.Fix, f.Code)
}

// TestWhatKeepsTokensAwayIsNamed plants what keeps a ManagedServiceAccount from having a token, and types what
// check says against it.
func TestWhatKeepsTokensAwayIsNamed(t *testing.T) {
	t.Parallel()
	p := start(t).join(t, "named")
	user := p.person(t)
	p.patch(t, p.onHub, clusters, reconcile.Key{Name: p.cluster}, `{"spec":{"managedClusterClientConfigs":[{"url":"`+p.spoke.Config.Host+`"}]}}`)

	taken := object("v1", "Secret", p.cluster, "taken")
	_, err := p.onHub.Resource(secrets).Namespace(p.cluster).Create(t.Context(), taken, metav1.CreateOptions{})
	require.NoError(t, err)
	p.ask(t, "taken", `{"rotation":{}}`)
	user.mended(t, p.cluster, "taken", finding{Code: "OCM0801", Title: "it has no token", Cause: "a Secret of this name exists",
		Fix: "kubectl delete secret taken -n named --context hub "})
	p.reported(t, "taken")

	foreign := object("v1", "ServiceAccount", p.namespace, "foreign")
	_, err = p.onSpoke.Resource(accounts).Namespace(p.namespace).Create(t.Context(), foreign, metav1.CreateOptions{})
	require.NoError(t, err)
	p.ask(t, "foreign", `{"rotation":{}}`)
	user.mended(t, p.cluster, "foreign", finding{Code: "OCM0801", Title: "it has no token", Cause: "was not created for a ManagedServiceAccount",
		Fix: "kubectl annotate serviceaccount foreign -n agents-named authentication.open-cluster-management.io/tokens-allowed=true --context spoke "})
	p.reported(t, "foreign")

	p.ask(t, "short", `{"rotation":{"validity":"1m"}}`)
	user.mended(t, p.cluster, "short", finding{Code: "OCM0801", Title: "it has no token", Cause: "spec.rotation.validity: is 1m0s",
		Fix: "kubectl patch managedserviceaccount short -n named --type merge "})

	// A token that cannot be renewed is told while it still works.
	p.reported(t, "short")
	p.patch(t, p.onHub, asked, reconcile.Key{Namespace: p.cluster, Name: "short"}, `{"spec":{"rotation":{"validity":"1s"}}}`)
	user.mended(t, p.cluster, "short", finding{Code: "OCM0801", Title: "its token is not renewed, and ends ", Cause: "is 1s",
		Fix: "kubectl patch managedserviceaccount short "})
	out, _ := user.ocm(t, "check", "cluster", p.cluster, "--context", "hub")
	require.Contains(t, out, "3 of 3 identities and permissions are as declared")

	enabled := p.onHub.Resource(addOns).Namespace(p.cluster)
	require.NoError(t, enabled.Delete(t.Context(), "managed-serviceaccount", metav1.DeleteOptions{}))
	user.mended(t, p.cluster, "taken", finding{Code: "OCM0802", Title: "no agent serves it", Cause: "The cluster does not have the add-on",
		Fix: "kubectl ocm addon enable managed-serviceaccount -c named --context hub"})
	_, err = enabled.Get(t.Context(), "managed-serviceaccount", metav1.GetOptions{})
	require.NoError(t, err)
}
