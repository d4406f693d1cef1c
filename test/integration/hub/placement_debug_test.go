// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule/verdict"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
)

// debugger calls the debug endpoint of placement the way its Service is reached: under
// its name, and trusting the authority that the hub publishes.
type debugger struct {
	client *http.Client
	base   string
}

// debugger connects to the port of the hub's process.
func (f *field) debugger(t *testing.T) *debugger {
	t.Helper()
	bundle, err := f.kube.CoreV1().ConfigMaps(hub.ComponentNamespace).Get(t.Context(), operatorv1.ConfigMapCABundle, metav1.GetOptions{})
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM([]byte(bundle.Data[operatorv1.ConfigMapKeyCABundle])))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: operatorv1.ServicePlacement + "." + hub.ComponentNamespace + ".svc"}}
	t.Cleanup(transport.CloseIdleConnections)
	return &debugger{client: &http.Client{Transport: transport}, base: "https://" + f.portOf(t, 9444)}
}

// call sends a request and returns code and body of the answer; the code is 0 when there
// is none.
func (d *debugger) call(method, path, token, body string) (int, string) {
	r, err := http.NewRequestWithContext(context.Background(), method, d.base+path, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := d.client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(raw)
}

// awaitCode sends a request until the answer has this code, and returns its body.
func (d *debugger) awaitCode(t *testing.T, code int, method, path, token, body string) string {
	t.Helper()
	last, text := 0, ""
	soon(t, func() bool {
		last, text = d.call(method, path, token, body)
		return last == code
	}, "%s %s: %d wanted, %d: %s", method, path, code, &last, &text)
	return text
}

// allow gives a ServiceAccount of the namespace rights on paths and placements.
func (f *field) allow(t *testing.T, account string, verbs ...string) (token string) {
	t.Helper()
	name := f.namespace + "-" + account
	_, err := f.kube.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/debug/placements/*"}, Verbs: []string{"get", "post"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	subject := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: f.namespace, Name: account}}
	_, err = f.kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: subject,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = f.kube.RbacV1().ClusterRoleBindings().Delete(context.Background(), name, metav1.DeleteOptions{})
		_ = f.kube.RbacV1().ClusterRoles().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
	if len(verbs) > 0 {
		_, err = f.kube.RbacV1().Roles(f.namespace).Create(t.Context(), &rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Name: account},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{placements.Group}, Resources: []string{"placements"}, Verbs: verbs}},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = f.kube.RbacV1().RoleBindings(f.namespace).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: account}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account}, Subjects: subject,
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	return f.As(t, f.namespace, account).BearerToken
}

// TestPlacementsAreExplainedOverHTTP calls the debug endpoint of a hub, and expects the
// answer that the plugin computes.
func TestPlacementsAreExplainedOverHTTP(t *testing.T) {
	f, names := newField(t, "pdebug", 3)
	f.place(
		t, "p",
		`{"numberOfClusters":1,"prioritizerPolicy":{"mode":"Exact","configurations":[{"scoreCoordinate":{"type":"BuiltIn","builtIn":"Steady"},"weight":2}]}}`,
	)
	f.awaitGroups(t, "p", "0: "+names[0])
	d := f.debugger(t)
	reader, maker, other := f.allow(t, "reader", "get"), f.allow(t, "maker", "create"), f.allow(t, "other")
	code, text := d.call("GET", "/debug/placements/pdebug/p", reader, "")
	require.Zero(t, code, "the port is closed while the gate is off: %s", text)

	pid := hubPID(t, f.scene)
	f.manage(t, `{"spec":{"placementConfiguration":{"featureGates":[{"feature":"PlacementDebugServer","mode":"Enable"}]}}}`)
	defer f.manage(t, `{"spec":{"placementConfiguration":null}}`)
	text = d.awaitCode(t, http.StatusOK, "GET", "/debug/placements/pdebug/p", reader, "")
	var got, want verdict.Explanation
	require.NoError(t, json.Unmarshal([]byte(text), &got))
	require.Equal(t, []verdict.Aggregated{{
		ClusterName: names[0],
		Score:       200,
	}, {
		ClusterName: names[1],
	}, {
		ClusterName: names[2],
	}}, got.AggregatedScores)
	require.Len(t, got.Clusters, 3, "clusters outside the sets of the namespace are not disclosed")
	require.True(t, got.Live.Same)
	c, err := fleet.Connect(f.Config, "hub")
	require.NoError(t, err)
	want, _, err = placement.Explain(t.Context(), placement.ExplainOptions{Common: fleet.Common{Clock: clock.RealClock{}}, Hub: c,
		Key: types.NamespacedName{Namespace: "pdebug", Name: "p"}})
	require.NoError(t, err)
	require.Equal(t, want.FilteredPipelineResults, got.FilteredPipelineResults)
	require.Equal(t, want.PrioritizeResults, got.PrioritizeResults)
	require.Equal(t, want.AggregatedScores, got.AggregatedScores)
	require.Equal(t, want.Placement.Spec, got.Placement.Spec)
	require.Equal(t, want.Groups, got.Groups)
	require.Equal(t, want.Live, got.Live)

	trial := `{"metadata":{"name":"trial","namespace":"pdebug"},
		"spec":{"predicates":[{"requiredClusterSelector":{"labelSelector":{"matchLabels":{"no":"where"}}}}]}}`
	got = verdict.Explanation{}
	require.NoError(t, json.Unmarshal([]byte(d.awaitCode(t, http.StatusOK, "POST", "/debug/placements/", maker, trial)), &got))
	require.Equal(t, "trial", got.Placement.Metadata.Name)
	require.Equal(
		t,
		[]verdict.Filtered{{
			Name:             "Predicate",
			FilteredClusters: []string{},
		}, {
			Name:             "Predicate,TaintToleration",
			FilteredClusters: []string{},
		}},
		got.FilteredPipelineResults,
	)
	require.Contains(t, got.Clusters[0].Reason, "no=where")
	_, err = f.dyn.Resource(placements).Namespace("pdebug").Get(t.Context(), "trial", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "nothing is stored: %v", err)

	require.Contains(t, d.awaitCode(t, http.StatusNotFound, "GET", "/debug/placements/pdebug/gone", reader, ""), "placement 'gone' not found")
	for what, tc := range map[string]struct{ method, path, token, body string }{
		"get without the right":    {"GET", "/debug/placements/pdebug/p", other, ""},
		"of none, without it":      {"GET", "/debug/placements/pdebug/gone", other, ""},
		"get with that to create":  {"GET", "/debug/placements/pdebug/p", maker, ""},
		"create with that to get":  {"POST", "/debug/placements/", reader, trial},
		"create elsewhere":         {"POST", "/debug/placements/", maker, strings.ReplaceAll(trial, "pdebug", "default")},
		"without that to the path": {"GET", "/debug/placements/pdebug/p", f.As(t, "default", "stranger").BearerToken, ""},
	} {
		code, text := d.call(tc.method, tc.path, tc.token, tc.body)
		require.Equal(t, http.StatusForbidden, code, "%s: %s", what, text)
		require.Contains(t, text, "user does not have permission to", what)
	}
	code, _ = d.call("GET", "/debug/placements/pdebug/p", "no token of this cluster", "")
	require.Equal(t, http.StatusUnauthorized, code)

	f.manage(t, `{"spec":{"placementConfiguration":{"featureGates":[{"feature":"PlacementDebugServer","mode":"Disable"}]}}}`)
	soon(t, func() bool {
		code, _ := d.call("GET", "/debug/placements/pdebug/p", reader, "")
		_, err := f.kube.CoreV1().Secrets(hub.ComponentNamespace).Get(context.Background(), operatorv1.SecretPlacementDebugServingCert, metav1.GetOptions{})
		return code == 0 && apierrors.IsNotFound(err)
	}, "port and certificate go with the gate")
	require.Equal(t, pid, hubPID(t, f.scene), "it was the same process all the time")
}
