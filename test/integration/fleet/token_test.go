// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	hubconfig "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// token is what hub token -o json prints.
type token struct {
	Token  string `json:"hub-token"`
	Server string `json:"hub-apiserver"`
	CAHash string `json:"ca-hash"`
	ID     string `json:"id"`
}

func newToken(t *testing.T, words ...string) token {
	t.Helper()
	made := run(t, append([]string{"hub", "token", "create", "-o", "json"}, words...)...)
	require.Zero(t, made.code)
	var out token
	require.NoError(t, json.Unmarshal([]byte(made.out), &out))
	return out
}

// worksOn returns an error when a token may not do what a joining cluster does.
func worksOn(t *testing.T, hub *harness.Cluster, bearer string) error {
	t.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{
		Host:            hub.Config.Host,
		BearerToken:     bearer,
		TLSClientConfig: rest.TLSClientConfig{CAData: hub.Config.CAData, CAFile: hub.Config.CAFile},
	})
	require.NoError(t, err)
	_, err = client.Resource(clusters).List(t.Context(), metav1.ListOptions{})
	return err
}

func TestTokensLiveUntilTheyAreRevoked(t *testing.T) {
	hub := harness.Shared(t, "hub")
	kubeconfig(t, hub)
	asHub(t, hub)
	made := newToken(t, "--context", "hub", "--cluster", "cluster1", "--ttl", "30m")
	require.NoError(t, worksOn(t, hub, made.Token))
	require.True(t, strings.HasPrefix(made.CAHash, "sha256:"))

	list := run(t, "hub", "token", "list", "--context", "hub")
	require.Contains(t, list.out, made.ID)
	require.Contains(t, list.out, "cluster1")
	require.NotContains(t, list.out+list.err, made.Token)

	require.Equal(t, 6, run(t, "hub", "token", "revoke", made.ID, "--context", "hub").code, "nobody can be asked")
	require.NoError(t, worksOn(t, hub, made.Token))
	require.Zero(t, run(t, "hub", "token", "revoke", made.ID, "--context", "hub", "--yes").code)
	eventually(t, func() bool { return apierrors.IsUnauthorized(worksOn(t, hub, made.Token)) }, patience, 200*time.Millisecond)
	require.Equal(t, 1, run(t, "hub", "token", "revoke", made.ID, "--context", "hub", "--yes").code)
}

func TestATokenIsOnlyMadeWhereItCanBeUsed(t *testing.T) {
	hub := harness.Shared(t, "hub")
	spoke := harness.Shared(t, "spoke")
	kubeconfig(t, hub, spoke)
	asHub(t, hub)
	plain := run(t, "hub", "token", "--context", "spoke")
	require.Equal(t, 1, plain.code)
	require.Contains(t, plain.err, "is not a hub")
	require.Equal(t, 2, run(t, "hub", "token", "--context", "hub", "--ttl", "10s").code)
	require.Equal(t, 2, run(t, "hub", "token", "--context", "hub", "--cluster", "kube-system").code)
	dry := run(t, "hub", "token", "--context", "hub", "--dry-run")
	require.Zero(t, dry.code)
	require.Empty(t, dry.out, "a secret without its values must not be applied")
	require.Contains(t, dry.err, "secret/join-token-")
	bootstrap := newToken(t, "--context", "hub", "--use-bootstrap-token", "--cluster", "boot")
	// The API server reads bootstrap tokens from a cache.
	eventually(t, func() bool { return worksOn(t, hub, bootstrap.Token) == nil }, patience, 100*time.Millisecond)
	csr := ask(t, bearer(hub, bootstrap.Token), "boot", "agent")
	registers(t, hub.Dynamic(t), "boot", false)
	require.Zero(t, run(t, "accept", "boot", "--context", "hub").code)
	require.Equal(t, "Approved", answer(t, hub.Dynamic(t), csr))
	require.Contains(t, run(t, "hub", "token", "list", "--context", "hub").out, "bootstrap")
}

// TestWhatClustersJoinWithIsMadeAgain ends all tokens by deleting their account and its
// rights, and checks that the next token works.
func TestWhatClustersJoinWithIsMadeAgain(t *testing.T) {
	hub := harness.Shared(t, "hub")
	kubeconfig(t, hub)
	client := asHub(t, hub)
	objects, err := hubconfig.Bootstrap()
	require.NoError(t, err)
	for _, u := range objects {
		resource, _ := apimeta.UnsafeGuessKindToResource(u.GroupVersionKind())
		require.NoError(t, client.Resource(resource).Namespace(u.GetNamespace()).Delete(t.Context(), u.GetName(), metav1.DeleteOptions{}))
	}
	dry := run(t, "hub", "token", "--context", "hub", "--dry-run")
	require.Zero(t, dry.code)
	require.Contains(t, dry.out, "kind: ServiceAccount", "what would be made again is shown")
	for _, sort := range []string{"", "--use-bootstrap-token"} {
		words := strings.Fields("--context hub " + sort)
		made := newToken(t, words...)
		eventually(t, func() bool { return worksOn(t, hub, made.Token) == nil }, patience, 100*time.Millisecond)
		again := run(t, append([]string{"hub", "token", "-o", "jsonpath={.items[*].object.kind}"}, words...)...)
		require.Equal(t, "Secret", again.out, "what is there is left alone")
	}
}

// TestATokenThatIsNotTakenIsExplained covers the wrong audience, a revoked token, and the
// hub's answer to a request with the token of another cluster.
func TestATokenThatIsNotTakenIsExplained(t *testing.T) {
	hub, spoke := harness.Shared(t, "hub"), harness.Shared(t, "spoke")
	kubeconfig(t, hub, spoke)
	client := asHub(t, hub)
	made := newToken(t, "--context", "hub", "--cluster", "tokens")
	request := object("authentication.k8s.io/v1", "TokenRequest", "open-cluster-management", "agent-registration-bootstrap", map[string]any{
		"spec": map[string]any{"audiences": []any{"vault"}, "expirationSeconds": int64(600)}})
	answered, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace("open-cluster-management").
		Create(t.Context(), request, metav1.CreateOptions{}, "token")
	require.NoError(t, err)
	vault, _, _ := unstructured.NestedString(answered.Object, "status", "token")
	// The printed command is accepted as it is, with a pipe.
	printed := regexp.MustCompile(`^echo (\S+) \| kubectl ocm join tokens --context <its context> (.*)\n$`).
		FindStringSubmatch(run(t, "hub", "token", "--context", "hub", "--cluster", "tokens").out)
	require.NotNil(t, printed)
	require.NotContains(t, printed[2], printed[1])
	bundle := run(t, "hub", "token", "--context", "hub", "--cluster", "tokens", "--print", "bundle").out
	for piped, flags := range map[string]string{printed[1]: printed[2], bundle: "--bundle -"} {
		got := runWith(t, piped, strings.Fields("join tokens --context spoke --dry-run "+flags)...)
		require.Zero(t, got.code)
		require.NotContains(t, got.out, "kind: Secret\n", "what lacks its values cannot be applied")
	}
	join := func(token string) said {
		return run(t, "join", "tokens", "--context", "spoke", "--hub-apiserver", made.Server, "--hub-token", token, "--hub-ca-hash", made.CAHash)
	}
	got := join(vault)
	require.NotZero(t, got.code)
	require.Contains(t, got.err, "is for the audience vault")
	require.NotContains(t, got.err, vault)

	// The hub's answer to a request is shown next to it.
	csr := ask(t, bearer(hub, made.Token), "others", "agent")
	live, err := client.Resource(requests).Get(t.Context(), csr, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedSlice(live.Object, []any{map[string]any{
		"type":    "Denied",
		"status":  "True",
		"reason":  "TokenForAnotherCluster",
		"message": "it was sent with join token x, which is for cluster tokens only"}}, "status",
		"conditions"))
	_, err = client.Resource(requests).Update(t.Context(), live, metav1.UpdateOptions{}, "approval")
	require.NoError(t, err)
	require.Contains(t, run(t, "accept", "--show", "--context", "hub").out, "TokenForAnotherCluster: it was sent with join token x")

	require.Zero(t, run(t, "hub", "token", "revoke", made.ID, "--context", "hub", "--yes").code)
	eventually(t, func() bool { return apierrors.IsUnauthorized(worksOn(t, hub, made.Token)) }, patience, 200*time.Millisecond)
	got = join(made.Token)
	require.NotZero(t, got.code)
	require.Contains(t, got.err, "expired or revoked")
	require.NotContains(t, got.err, made.Token)
	require.False(t, written(t, spoke))
}
