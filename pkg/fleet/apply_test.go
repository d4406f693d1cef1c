// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

func TestContainsComparesWhatIsNamed(t *testing.T) {
	live := map[string]any{"a": int64(1), "b": map[string]any{"c": "x", "d": "default"}, "l": []any{map[string]any{"n": "1", "p": "TCP"}}}
	for name, tc := range map[string]struct {
		want map[string]any
		is   bool
	}{
		"nothing":                    {map[string]any{}, true},
		"a part":                     {map[string]any{"b": map[string]any{"c": "x"}}, true},
		"a list item with a default": {map[string]any{"l": []any{map[string]any{"n": "1"}}}, true},
		"another value":              {map[string]any{"a": int64(2)}, false},
		"one more item":              {map[string]any{"l": []any{map[string]any{"n": "1"}, map[string]any{"n": "2"}}}, false},
		"a field that is not there":  {map[string]any{"z": "y"}, false},
		"a zero that is not there":   {map[string]any{"z": "", "y": map[string]any{}, "x": []any{}}, true},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.is, contains(live, tc.want)) })
	}
}

func TestSecretsAreRedactedButTheirKubeconfigCanBeChecked(t *testing.T) {
	raw, err := bootstrapKubeconfig(Endpoint{Server: "https://hub"}, goodToken)
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "data": map[string]any{
		"kubeconfig": base64.StdEncoding.EncodeToString(raw), "other": base64.StdEncoding.EncodeToString([]byte("hush"))}}}
	out := redact(u)
	require.Equal(t, redactedToken, secretValue(out, "other"))
	require.Contains(t, secretValue(out, "kubeconfig"), "https://hub")
	require.NotContains(t, secretValue(out, "kubeconfig"), goodToken)
	require.Contains(t, secretValue(u, "kubeconfig"), goodToken, "the object itself is not changed")
}

func TestGatesAreMergedByName(t *testing.T) {
	on, off := operatorv1.FeatureGateModeTypeEnable, operatorv1.FeatureGateModeTypeDisable
	got := mergeGates([]operatorv1.FeatureGate{{Feature: "B", Mode: on}, {Feature: "C", Mode: off}}, map[string]bool{"B": false, "A": true})
	require.Empty(t, cmp.Diff([]operatorv1.FeatureGate{{Feature: "A", Mode: on}, {Feature: "B", Mode: off}, {Feature: "C", Mode: off}}, got))
	require.NoError(t, CheckGates(map[string]bool{"ClusterClaim": true}, AgentGates))
	require.Error(t, CheckGates(map[string]bool{"ClusterClaim": true}, HubGates))
}

func TestAutoAcceptanceTurnsItsGateOn(t *testing.T) {
	cm := &operatorv1.ClusterManager{}
	(&InitOptions{AutoAccept: []string{"alice"}, FeatureGates: map[string]bool{"ManifestWorkReplicaSet": false, "AddonManagement": true, "PlacementDebugServer": true}}).adapt(cm)
	require.Equal(t, []string{"alice"}, cm.Spec.RegistrationConfiguration.AutoApproveUsers)
	require.Equal(t, "ManagedClusterAutoApproval", cm.Spec.RegistrationConfiguration.FeatureGates[0].Feature)
	require.Equal(t, operatorv1.FeatureGateModeTypeDisable, cm.Spec.WorkConfiguration.FeatureGates[0].Mode)
	require.Len(t, cm.Spec.AddOnManagerConfiguration.FeatureGates, 1)
	require.Len(t, cm.Spec.PlacementConfiguration.FeatureGates, 1)
}

func TestManyFailuresBecomeOneError(t *testing.T) {
	bad, worse := refused("a", "", "fix a"), usage("b", "", "")
	require.NoError(t, outcome(nil, 2))
	require.Equal(t, error(bad), outcome([]error{bad}, 1))
	for want, failures := range map[Kind][]error{Partial: {bad}, Refused: {bad, bad, bad}, Failed: {bad, worse, bad}} {
		var e *Error
		require.True(t, errors.As(outcome(failures, 3), &e))
		require.Equal(t, want, e.Kind)
		require.Equal(t, "fix a", e.Fix)
	}
}

func TestErrorsOfTheAPIAreExplained(t *testing.T) {
	c := &Cluster{Context: "hub", Config: &rest.Config{Host: "https://hub:6443"}}
	webhook := func(text string) error {
		return apierrors.NewForbidden(managedClusters.GroupResource(), "c1", errors.New(`admission webhook "v" denied the request: `+text))
	}
	for name, tc := range map[string]struct {
		err  error
		kind Kind
		want string
	}{
		"no rights":          {apierrors.NewForbidden(managedClusters.GroupResource(), "c1", errors.New("no")), Failed, "cluster-admin"},
		"admission":          {webhook("reserved"), Failed, "reserved"},
		"a namespace leaves": {webhook("namespace c1 is terminating"), Failed, "when the namespace is gone"},
		"no answer":          {&url.Error{Op: "Get", URL: "https://hub", Err: errors.New("connection refused")}, Failed, "check address, network and proxy"},
		"another CA":         {&url.Error{Op: "Get", URL: "https://hub", Err: errors.New("x509: unknown authority")}, Failed, "--certificate-authority"},
		"too late":           {&url.Error{Op: "Get", URL: "https://hub", Err: context.DeadlineExceeded}, Timeout, "--timeout"},
		"wrong login":        {apierrors.NewUnauthorized("no"), Failed, "renew the credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			var e *Error
			require.ErrorAs(t, explain("reading x", c, tc.err), &e)
			require.Equal(t, tc.kind, e.Kind)
			require.Contains(t, e.Cause+e.Fix, tc.want)
		})
	}
	var refused *Error
	require.ErrorAs(t, explain("x", c, webhook("reserved")), &refused)
	require.NotContains(t, refused.Fix, "cluster-admin")
	canceled := &url.Error{Op: "Get", URL: "https://hub", Err: context.Canceled}
	require.Equal(t, error(canceled), explain("x", c, canceled), "an interruption is told as one")
}

func TestRandomTextIsOfLettersAndDigits(t *testing.T) {
	text, err := randomText(bytes.NewReader([]byte{255, 0, 35, 36, 251, 254, 7}), 5)
	require.NoError(t, err)
	require.Equal(t, "a9a9h", text)
	_, err = randomText(strings.NewReader(""), 1)
	require.Error(t, err)
}

func TestCredentialsOfTokens(t *testing.T) {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	id, err := credentialID("h." + part(`{"jti":"1-2"}`) + ".s")
	require.NoError(t, err)
	require.Equal(t, "JTI=1-2", id)
	for _, wrong := range []string{"", "a.b", "h.!.s", "h." + part("no") + ".s"} {
		_, err := credentialID(wrong)
		require.Error(t, err)
	}
	_, _, ok := bootstrapToken("abcdef.0123456789abcdeF")
	require.False(t, ok)
}

func TestShellWordsAreQuotedWhereNeeded(t *testing.T) {
	for in, want := range map[string]string{"hub": "hub", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "arn:aws:eks/x@y": "arn:aws:eks/x@y"} {
		require.Equal(t, want, ShellWord(in))
	}
}

func TestLoopbackMeansThisMachine(t *testing.T) {
	for server, want := range map[string]bool{"https://127.0.0.1:6443": true, "https://localhost": true, "https://[::1]:1": true, "https://10.0.0.1": false, "https://hub": false, "://": false} {
		require.Equal(t, want, isLoopback(server), server)
	}
}
