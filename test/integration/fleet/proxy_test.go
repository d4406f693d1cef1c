// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	library "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// reachable is a hub that leads to its clusters c1 and c2; c3 has no tunnel.
type reachable struct {
	hub     *harness.Cluster
	spokes  map[string]*harness.Cluster
	kubectl string
	// memory is the folder in memory of the user.
	memory string
	// token is the Authorization of the last request to a cluster.
	token atomic.Value
}

// reach makes a hub that leads to two clusters. This server stands in for the hub's own: it answers the same
// paths in the same words.
func reach(t *testing.T) *reachable {
	t.Helper()
	r := &reachable{hub: harness.Fresh(t, "hub"), spokes: map[string]*harness.Cluster{"c1": harness.Fresh(t, "c1"), "c2": harness.Fresh(t, "c2")},
		memory: t.TempDir()}
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	r.kubectl = binaries.Kubectl
	contexts(t, map[string]*harness.Cluster{"hub": r.hub, "direct-c1": r.spokes["c1"]})
	client := asHub(t, r.hub)
	for name, connected := range map[string]string{"c1": "True", "c2": "True", "c3": "False"} {
		mc := registers(t, client, name, true)
		reports(t, client, mc, "True")
		at := metav1.Now().UTC().Format(time.RFC3339)
		live, err := client.Resource(clusters).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		status := live.Object["status"].(map[string]any)
		status["conditions"] = append(status["conditions"].([]any), map[string]any{"type": connectv1alpha1.ConditionTunnelConnected, "status": connected,
			"reason":  map[string]string{"True": connectv1alpha1.ReasonTunnelConnected, "False": connectv1alpha1.ReasonTunnelNeverConnected}[connected],
			"message": "as the test says", "lastTransitionTime": at})
		_, err = client.Resource(clusters).UpdateStatus(t.Context(), live, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	server := httptest.NewTLSServer(r.handler(t))
	t.Cleanup(server.Close)
	config, err := clientcmd.LoadFromFile(configOf(t))
	require.NoError(t, err)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config.Clusters["proxied"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: ca}
	config.Contexts["proxied"] = &clientcmdapi.Context{Cluster: "proxied", AuthInfo: "hub"}
	require.NoError(t, clientcmd.WriteToFile(*config, configOf(t)))
	return r
}

func (r *reachable) handler(t *testing.T) http.Handler {
	onto := func(c *harness.Cluster) http.Handler {
		target, err := url.Parse(c.Config.Host)
		require.NoError(t, err)
		transport, err := rest.TransportFor(c.Config)
		require.NoError(t, err)
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.Transport = transport
		proxy.FlushInterval = -1
		return proxy
	}
	mux := http.NewServeMux()
	mux.Handle("/", onto(r.hub))
	mux.HandleFunc("/apis/"+connectv1alpha1.GroupVersion.String(), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{GroupVersion: connectv1alpha1.GroupVersion.String()})
	})
	for name, c := range r.spokes {
		prefix := connectv1alpha1.ServerPath(name)
		handler := http.StripPrefix(prefix, onto(c))
		mux.HandleFunc(prefix+"/", func(w http.ResponseWriter, q *http.Request) {
			r.token.Store(q.Header.Get("Authorization"))
			handler.ServeHTTP(w, q)
		})
	}
	for name, c := range r.spokes {
		prefix, as := connectv1alpha1.AccountPath(name, "robot"), rest.CopyConfig(c.Config)
		as.Impersonate.UserName = robot
		mux.Handle(prefix+"/", http.StripPrefix(prefix, onto(&harness.Cluster{Config: as})))
	}
	mux.HandleFunc(connectv1alpha1.PathNamespaces, func(w http.ResponseWriter, q *http.Request) {
		account := strings.Split(strings.TrimPrefix(q.URL.Path, connectv1alpha1.PathNamespaces), "/")[2]
		switch account {
		case "theirs":
			refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "c1", connectv1alpha1.CauseAccountRefused, "it was created for another hub")
		case "elder":
			refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "c1", connectv1alpha1.CauseAgentTooOld, "the agent is too old")
		case "secret", "narrow":
			denied := apierrors.NewForbidden(schema.GroupResource{Group: connectv1alpha1.GroupName, Resource: "managedserviceaccounts"}, account, errors.New("no"))
			if account == "narrow" { // the managed cluster's own words
				denied = apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts"}, account, errors.New("no"))
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			status := denied.Status()
			status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
			_ = json.NewEncoder(w).Encode(status)
		default:
			refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "c1", connectv1alpha1.CauseUnknownAccount, "the cluster has no such ServiceAccount, or not yet")
		}
	})
	mux.HandleFunc(connectv1alpha1.ServerPath("c3")+"/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "c3", connectv1alpha1.CauseNoTunnel, "cluster c3 holds no tunnel")
	})
	mux.HandleFunc(connectv1alpha1.PathManagedClusters, func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "nosuch", connectv1alpha1.CauseUnknownCluster, "there is no ManagedCluster nosuch")
	})
	return mux
}

// refuse answers as the hub does.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, cluster, cause, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(connectv1alpha1.HeaderError, cause)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message, Details: &metav1.StatusDetails{Kind: connectv1alpha1.ResourceManagedClusters, Name: cluster,
			Causes: []metav1.StatusCause{{Type: metav1.CauseType(cause), Message: message}}}})
}

// runs runs the plugin in this process with a PATH that has kubectl.
func (r *reachable) runs(t *testing.T, stdin string, words ...string) said {
	t.Helper()
	return r.runsWith(t, filepath.Dir(r.kubectl), stdin, words...)
}

func (r *reachable) runsWith(t *testing.T, path, stdin string, words ...string) said {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), atMost)
	defer cancel()
	var out, err bytes.Buffer
	env := map[string]string{"LANG": "C.UTF-8", "PATH": path, "XDG_RUNTIME_DIR": r.memory}
	s := app.Streams{In: strings.NewReader(stdin), Out: &out, Err: &err, Clock: clock.RealClock{}, Getenv: func(name string) string { return env[name] }}
	code := app.Run(ctx, s, append([]string{"kubectl-ocm", "--kubeconfig", configOf(t), "proxy"}, words...))
	t.Logf("kubectl ocm proxy %s\nexit %d\n%s%s", strings.Join(words, " "), code, out.String(), err.String())
	left, failure := os.ReadDir(r.memory)
	require.NoError(t, failure)
	require.Empty(t, left, "credentials stay behind")
	return said{code, out.String(), err.String()}
}

// direct runs kubectl without the plugin.
func (r *reachable) direct(t *testing.T, words ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), r.kubectl, words...)
	command.Env = environment(t)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// TestClustersAreReachedThroughTheirHub runs kubectl on clusters behind a hub.
func TestClustersAreReachedThroughTheirHub(t *testing.T) {
	t.Parallel()
	r := reach(t)
	t.Run("one cluster", func(t *testing.T) { r.testOne(t) })
	t.Run("several clusters", func(t *testing.T) { r.testSeveral(t) })
	t.Run("a cluster that cannot be reached", func(t *testing.T) { r.testFailures(t) })
	t.Run("health", func(t *testing.T) { r.testHealth(t) })
	t.Run("a kubeconfig for any client", func(t *testing.T) { r.testKubeconfig(t) })
	t.Run("as an account", func(t *testing.T) { r.testAccount(t) })
	t.Run("a user who logs in by a program", func(t *testing.T) { r.testExecUser(t) })
	t.Run("an API that nobody serves", func(t *testing.T) { r.testCodes(t) })
	t.Run("the program itself", func(t *testing.T) { r.testProcess(t) })
}

func (r *reachable) testOne(t *testing.T) {
	on := func(words ...string) []string {
		return append([]string{"kubectl", "-c", "c1", "--context", "proxied"}, words...)
	}
	require.Contains(t, r.runs(t, configMap, on("--", "apply", "-f", "-")...).out, "configmap/greeting created")
	got := r.runs(t, "", on("--", "get", "configmaps", "-n", "default", "-o", "json")...)
	require.Zero(t, got.code)
	require.Equal(t, r.direct(t, "get", "configmaps", "-n", "default", "-o", "json", "--context", "direct-c1"), got.out)
	require.Empty(t, got.err)
	require.Equal(t, got.out, r.runs(t, "", on("get", "configmaps", "-n", "default", "-o", "json")...).out, "without --")
	require.Equal(t, 1, r.runs(t, "", on("--", "get", "configmap", "nosuch")...).code)
	require.Contains(t, r.runs(t, "", append(on("-n", "kube-system"), "get", "configmap", "nosuch")...).err, `configmaps "nosuch" not found`)
	changed := r.runs(t, strings.Replace(configMap, "hello", "other", 1), on("diff", "-f", "-")...)
	require.Equal(t, 1, changed.code, "kubectl's own exit code")
	require.Contains(t, r.runs(t, "", on("--as", "nobody", "get", "pods")...).err, `User "nobody" cannot list resource "pods"`)
	for _, words := range [][]string{{"get", "pods", "--kubeconfig", "x"}, {"get", "pods", "--context=hub"}, {"get", "pods", "-s", "https://x"}} {
		require.Equal(t, 2, r.runs(t, "", on(words...)...).code)
	}
}

func (r *reachable) testSeveral(t *testing.T) {
	all := func(words ...string) []string {
		return append([]string{"kubectl", "-c", "c1,c2", "--context", "proxied", "--"}, words...)
	}
	applied := r.runs(t, configMap, all("apply", "-f", "-")...)
	require.Regexp(t, `c1   configmap/greeting (unchanged|created|configured)\nc2   configmap/greeting created\n`, applied.out)
	table := r.runs(t, "", all("get", "configmaps", "-n", "default")...)
	require.Zero(t, table.code)
	require.Regexp(t, `^CLUSTER   NAME               DATA   AGE
c1        greeting           1      \S+
c1        kube-root-ca.crt   1      \S+
c2        greeting           1      \S+
c2        kube-root-ca.crt   1      \S+
$`, table.out)
	for _, format := range []string{"json", "yaml"} {
		got := r.runs(t, "", all("get", "configmaps", "greeting", "-n", "default", "-o", format)...)
		require.Zero(t, got.code)
		var list struct {
			Kind  string
			Items []struct {
				Metadata struct{ Name, Annotations any }
			}
		}
		if format == "json" {
			require.True(t, json.Valid([]byte(got.out)))
		}
		require.NoError(t, yaml.Unmarshal([]byte(got.out), &list))
		require.Equal(t, "List", list.Kind)
		require.Len(t, list.Items, 2)
		for i, name := range []string{"c1", "c2"} {
			require.Equal(t, name, list.Items[i].Metadata.Annotations.(map[string]any)["open-cluster-management.io/cluster-name"])
		}
	}
	down := r.runs(t, "", "kubectl", "--all", "--context", "proxied", "--", "get", "configmaps", "greeting", "-n", "default")
	require.Equal(t, 3, down.code)
	require.Contains(t, down.out, "c2        greeting")
	require.NotContains(t, down.out, "c3")
	require.Contains(t, down.err, "c3: cluster c3 cannot be reached through context proxied")
	require.Contains(t, down.err, "cluster c3 holds no tunnel")
	require.Contains(t, down.err, "failed on 1 of 3 clusters: c3")
	for _, words := range [][]string{
		{"exec", "-it", "x", "--", "sh"},
		{"get", "pods", "-w"},
		{"logs", "-f", "x"},
		{"edit", "cm", "x"},
		{"port-forward", "x", "1"},
	} {
		got := r.runs(t, "", all(words...)...)
		require.Equal(t, 2, got.code, words)
		require.Contains(t, got.err, "cannot be done on several clusters at once")
	}
}

func (r *reachable) testFailures(t *testing.T) {
	down := r.runs(t, "", "kubectl", "-c", "c3", "--context", "proxied", "get", "pods")
	require.Equal(t, 1, down.code)
	require.Contains(t, down.err, "cause: cluster c3 holds no tunnel")
	require.Contains(t, down.err, "kubectl ocm join c3 --feature-gates ClusterProxy=true --context <its context> --hub-context proxied")
	unknown := r.runs(t, "", "kubectl", "-c", "nosuch", "--context", "proxied", "get", "pods")
	require.Equal(t, 1, unknown.code)
	require.Contains(t, unknown.err, "nosuch")
	require.Contains(t, unknown.err, "kubectl ocm cluster list --context proxied")
	require.Equal(t, 2, r.runs(t, "", "kubectl", "-c", "../c1", "--context", "proxied", "get", "pods").code)
	require.Contains(t, r.runs(t, "", "kubectl", "--context", "proxied", "get", "pods").err, "no cluster is named")
	for _, words := range [][]string{{"kubectl", "-c", "c1", "get", "pods"}, {"health"}, {"kubeconfig", "-c", "c1"}} {
		off := r.runs(t, "", append([]string{words[0], "--context", "hub"}, words[1:]...)...)
		require.Equal(t, 6, off.code, "the gate is off")
		require.Contains(t, off.err, "fix:   kubectl ocm hub init --feature-gates ClusterProxy=true --context hub\n")
	}
	none := r.runsWith(t, t.TempDir(), "", "kubectl", "-c", "c1", "--context", "proxied", "get", "pods")
	require.Equal(t, 1, none.code)
	require.Contains(t, none.err, "there is no kubectl on PATH")
}

func (r *reachable) testHealth(t *testing.T) {
	all := r.runs(t, "", "health", "--context", "proxied")
	require.Equal(t, 3, all.code)
	require.Regexp(t, `^CLUSTER   ADDON   TUNNEL      APISERVER     LATENCY\(p50\)   MESSAGE
c1        on      connected   ok            [0-9.]+ms\s+-
c2        on      connected   ok            [0-9.]+ms\s+-
c3        off     never       unreachable   -              cluster c3 holds no tunnel
$`, all.out)
	two := r.runs(t, "", "health", "-c", "c1,c2", "-o", "json", "--context", "proxied")
	require.Zero(t, two.code)
	var list struct {
		Items []struct {
			Cluster, APIServer     string
			LatencyP50Milliseconds float64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(two.out), &list))
	require.Len(t, list.Items, 2)
	require.Equal(t, "ok", list.Items[1].APIServer)
	require.Positive(t, list.Items[1].LatencyP50Milliseconds)
	listed := run(t, "cluster", "list", "-o", "wide", "--context", "hub")
	require.Regexp(t, `(?m)^c1 .* connected$`, listed.out)
	require.Regexp(t, `(?m)^c3 .* never$`, listed.out)
}

func (r *reachable) testKubeconfig(t *testing.T) {
	printed := r.runs(t, "", "kubeconfig", "-c", "c1", "-n", "kube-system", "--context", "proxied")
	require.Zero(t, printed.code)
	file := filepath.Join(t.TempDir(), "c1")
	require.NoError(t, os.WriteFile(file, []byte(printed.out), 0o600))
	require.Contains(t, r.direct(t, "get", "configmaps", "--kubeconfig", file), "extension-apiserver-authentication")

	before, err := clientcmd.LoadFromFile(configOf(t))
	require.NoError(t, err)
	require.Contains(t, r.runs(t, "", "kubeconfig", "-c", "c1", "--merge", "--context", "proxied").out, "context/proxied/c1 configured")
	require.Contains(t, r.runs(t, "", "kubeconfig", "-c", "c1", "--merge", "--context", "proxied").out, "context/proxied/c1 unchanged")
	require.Contains(t, r.direct(t, "get", "configmap", "greeting", "-n", "default", "--context", "proxied/c1"), "greeting")
	after, err := clientcmd.LoadFromFile(configOf(t))
	require.NoError(t, err)
	require.Equal(t, before.AuthInfos, after.AuthInfos, "no credential is stored twice")
	require.Equal(t, before.CurrentContext, after.CurrentContext)
	delete(after.Clusters, "proxied/c1")
	delete(after.Contexts, "proxied/c1")
	require.Equal(t, before.Contexts, after.Contexts)
	require.Equal(t, before.Clusters, after.Clusters)
	require.Equal(t, 2, r.runs(t, "", "kubeconfig", "-c", "c1", "--merge", "--as", "ann", "--context", "proxied").code)
	require.Equal(t, 1, r.runs(t, "", "kubeconfig", "-c", "nosuch", "--context", "proxied").code)
}

// robot is the account that the clusters of the test have.
const robot = "system:serviceaccount:open-cluster-management-agent-addon:robot"

func (r *reachable) testAccount(t *testing.T) {
	as := func(account string, words ...string) said {
		return r.runs(t, "", append([]string{"kubectl", "-c", "c1", "--as-sa", account, "--context", "proxied", "--"}, words...)...)
	}
	got := as("robot", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
	require.Zero(t, got.code)
	require.Equal(t, robot, got.out)
	denied := as("robot", "get", "secrets", "-n", "kube-system")
	require.Equal(t, 1, denied.code)
	require.Contains(t, denied.err, `User "`+robot+`" cannot list resource "secrets"`)
	require.NotContains(t, denied.err, "fix:", "the cluster is reached")
	both := r.runs(t, "", "kubectl", "-c", "c1,c2", "--as-sa", "robot", "--context", "proxied", "--", "auth", "whoami")
	require.Zero(t, both.code)
	require.Regexp(t, `c1 .*`+robot, both.out)
	require.Regexp(t, `c2 .*`+robot, both.out)

	hub := r.hub.Dynamic(t)
	definition, err := crd.Get("managedserviceaccounts.authentication.open-cluster-management.io")
	require.NoError(t, err)
	for resource, u := range map[schema.GroupVersionResource]*unstructured.Unstructured{
		library.Definitions: definition, library.Namespaces: object("v1", "Namespace", "", "c1", nil),
	} {
		_, err = hub.Resource(resource).Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for _, name := range []string{"robot", "late"} {
		account := object("authentication.open-cluster-management.io/v1beta1", "ManagedServiceAccount", "c1", name,
			map[string]any{"spec": map[string]any{"rotation": map[string]any{}}})
		until(t, func() error { // the kind is served after a moment
			_, err := hub.Resource(library.ManagedAccounts).Namespace("c1").Create(t.Context(), account.DeepCopy(), metav1.CreateOptions{})
			return err
		})
	}
	for account, want := range map[string][]string{
		"robt": {
			`there is no ManagedServiceAccount "robt" of cluster c1`, `did you mean "robot"?`,
			"fix:   kubectl get managedserviceaccounts -n c1 --context proxied",
		},
		"late": {"cluster c1 cannot be used as late", "or not yet", "fix:   kubectl ocm addon status managed-serviceaccount -c c1 --context proxied"},
		"secret": {`"secret" is forbidden`, "fix:   kubectl create rolebinding act-as-accounts -n c1 " +
			"--clusterrole=open-cluster-management:managedserviceaccounts:proxy " +
			"--user=<you> --context proxied"},
		"narrow": {`"narrow" is forbidden`, "kubectl create role act-as-narrow -n open-cluster-management-agent-addon --verb=impersonate"},
		"theirs": {"it was created for another hub", "fix:   kubectl get managedserviceaccounts -n c1 --context proxied"},
		"elder":  {"the agent is too old", "fix:   kubectl ocm join c1 --upgrade --context <its context> --hub-context proxied"},
	} {
		got := as(account, "get", "pods")
		require.Equal(t, 1, got.code, account)
		for _, text := range want {
			require.Contains(t, got.err, text, account)
		}
	}
	require.Equal(t, 2, as("../robot", "get", "pods").code)
	off := r.runs(t, "", "kubectl", "-c", "c1", "--as-sa", "robot", "--context", "hub", "get", "pods")
	require.Equal(t, 6, off.code, "the gate is off")

	printed := r.runs(t, "", "kubeconfig", "-c", "c1", "--as-sa", "robot", "--context", "proxied")
	require.Zero(t, printed.code)
	file := filepath.Join(t.TempDir(), "robot")
	require.NoError(t, os.WriteFile(file, []byte(printed.out), 0o600))
	require.Equal(t, robot, r.direct(t, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}", "--kubeconfig", file, "--context", "c1/robot"))
	require.Contains(t, r.runs(t, "", "kubeconfig", "-c", "c1", "--as-sa", "robot", "--merge", "--context", "proxied").out, "context/proxied/c1/robot configured")
	require.Equal(t, robot, r.direct(t, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}", "--context", "proxied/c1/robot"))
	for _, command := range []string{"kubectl", "port-forward"} {
		until(t, func() error { // a slow hub completes nothing
			completed := run(t, "__complete", "proxy", command, "-c", "c1", "--context", "hub", "--as-sa", "ro")
			if !strings.HasPrefix(completed.out, "robot\n") {
				return fmt.Errorf("completed %q", completed.out)
			}
			return nil
		})
	}

	forwarded := r.runs(t, "", "port-forward", "-c", "c1", "--as-sa", "robot", "svc/web", "0:80", "-n", "default", "--context", "proxied")
	require.Equal(t, 1, forwarded.code)
	require.Contains(t, forwarded.err, `User "`+robot+`" cannot get resource "services"`, "the cluster sees the account")
	elder := r.runs(t, "", "port-forward", "-c", "c1", "--as-sa", "elder", "svc/web", "0:80", "--context", "proxied")
	require.Contains(t, elder.err, "cause: the agent is too old")
	require.Equal(t, 2, r.runs(t, "", "port-forward", "-c", "c1", "--as-sa", "../robot", "svc/web", "80", "--context", "proxied").code)
}

// testCodes leaves an APIService behind, as a hub does that was removed by force: check names it, and its fix is typed. The
// tunnel of c3 is told of too.
func (r *reachable) testCodes(t *testing.T) {
	service := object("apiregistration.k8s.io/v1", "APIService", "", connectv1alpha1.APIService, map[string]any{"spec": map[string]any{
		"group": connectv1alpha1.GroupName, "version": connectv1alpha1.Version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(10),
		"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "open-cluster-management", "name": "nobody"},
	}})
	_, err := r.hub.Dynamic(t).Resource(library.APIServices).Create(t.Context(), service, metav1.CreateOptions{})
	require.NoError(t, err)
	f := mended(t, "OCM0216", "hub", "--context", "hub")
	require.Contains(t, f.Cause, "ServiceNotFound")
	require.Contains(t, f.Cause, "namespaces of the hub cannot be deleted; nobody serves it, because the feature gate ClusterProxy is off")
	require.Equal(t, "kubectl delete apiservice "+connectv1alpha1.APIService+" --context hub", f.Fix)
	f = found(t, "OCM0314", "cluster", "c3", "--context", "hub")
	require.Equal(t, "it is not reached through the hub: its agent has opened no tunnel", f.Title)
	require.Equal(t, "kubectl ocm join c3 --feature-gates ClusterProxy=true --context <its context> --hub-context hub      if its agent has the gate off", f.Fix)
	require.NotContains(t, looked(t, "cluster", "c1", "--context", "hub"), "OCM0314")
}

// testExecUser has a user of the hub whose token a program prints.
func (r *reachable) testExecUser(t *testing.T) {
	login := filepath.Join(t.TempDir(), "login")
	script := `#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"printed"}}'
`
	require.NoError(t, os.WriteFile(login, []byte(script), 0o700)) //nolint:gosec // it is run
	config, err := clientcmd.LoadFromFile(configOf(t))
	require.NoError(t, err)
	config.AuthInfos["login"] = &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{Command: login, APIVersion: "client.authentication.k8s.io/v1",
		InteractiveMode: clientcmdapi.NeverExecInteractiveMode}}
	config.Contexts["login"] = &clientcmdapi.Context{Cluster: "proxied", AuthInfo: "login"}
	require.NoError(t, clientcmd.WriteToFile(*config, configOf(t)))
	r.runs(t, "", "kubectl", "-c", "c1", "--context", "login", "get", "pods")
	require.Equal(t, "Bearer printed", r.token.Load())
}

// testProcess runs the built program with a kubectl that tells what it was given.
func (r *reachable) testProcess(t *testing.T) {
	folder := t.TempDir()
	notes := filepath.Join(folder, "notes")
	script := `#!/bin/sh
stat -c '%a' "$KUBECONFIG" > '` + notes + `'
for word in "$@"; do echo "<$word>" >> '` + notes + `'; done
case "$1" in
  terminal) trap 'exit 9' INT; stty size; while :; do sleep 0.05; done;;
  wait) trap 'echo told; exit 7' TERM; echo ready; while :; do sleep 0.05; done;;
esac
`
	require.NoError(t, os.WriteFile(filepath.Join(folder, "kubectl"), []byte(script), 0o700)) //nolint:gosec // it is run
	start := func(words ...string) (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.CommandContext(t.Context(), harness.Program(t, "plugins/kubectl-ocm"),
			append([]string{"proxy", "kubectl", "-c", "c1", "--context", "proxied", "--kubeconfig", configOf(t), "--"}, words...)...)
		cmd.Env = append(environment(t), "PATH="+folder+string(filepath.ListSeparator)+os.Getenv("PATH"), "XDG_RUNTIME_DIR="+r.memory)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		return cmd, &out
	}
	cmd, out := start("get", "a b", `"c"`, "$d", "", "-o", "jsonpath={.x y}")
	require.NoError(t, cmd.Run(), out)
	told, err := os.ReadFile(notes)
	require.NoError(t, err)
	require.Equal(t, "600\n<get>\n<a b>\n<\"c\">\n<$d>\n<>\n<-o>\n<jsonpath={.x y}>\n", string(told))

	cmd, _ = start("terminal")
	onTerminal(t, cmd)

	cmd, _ = start("wait")
	cmd.Stdout = nil
	ready, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line := make([]byte, len("ready\n"))
	_, err = io.ReadFull(ready, line)
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, 7, exit.ExitCode(), "kubectl decides what a signal means")
	require.NoError(t, filepath.WalkDir(r.memory, func(path string, d fs.DirEntry, err error) error {
		require.True(t, d.IsDir() && path == r.memory, "%s stays behind", path)
		return err
	}))
}
