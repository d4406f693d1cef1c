// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	confighub "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func due(change ...func(*State)) State {
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", Annotations: map[string]string{clusterv1.AnnotationCAPICluster: "fleet/one"}}}
	s := State{Cluster: mc, Found: true, Phase: phaseProvisioned, Now: noon, sight: read}
	for _, c := range change {
		c(&s)
	}
	return s
}

func condition(kind string, status metav1.ConditionStatus) func(*State) {
	return func(s *State) {
		s.Cluster.Status.Conditions = append(s.Cluster.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "R"})
	}
}

func TestDecide(t *testing.T) {
	createdBy := func(user string) func(*State) {
		return func(s *State) { s.Cluster.Annotations[clusterv1.AnnotationCreator] = user }
	}
	for name, tc := range map[string]struct {
		state   State
		due     bool
		reason  string
		message string
	}{
		"provisioned":         {due(), true, clusterv1.ReasonImportSucceed, "Cluster fleet/one"},
		"failed":              {due(func(s *State) { s.Failed = &failure{"R", "m"} }), true, "R", "m"},
		"not provisioned":     {due(func(s *State) { s.Phase = "Pending" }), false, clusterv1.ReasonKubeConfigNotFound, `its phase is "Pending"`},
		"named and not there": {due(func(s *State) { s.Found = false }), false, clusterv1.ReasonKubeConfigNotFound, "no Cluster fleet/one"},
		"named and not readable": {
			due(func(s *State) { s.Found, s.sight = false, denied }), false,
			clusterv1.ReasonKubeConfigGetFailed, confighub.AllowImporter,
		},
		"named and not read yet":      {due(func(s *State) { s.Found, s.sight = false, unread }), false, "", ""},
		"an ordinary cluster":         {due(func(s *State) { s.Found, s.Cluster.Annotations = false, nil }), false, "", ""},
		"imported":                    {due(condition(clusterv1.ConditionImportSucceeded, metav1.ConditionTrue)), false, "", ""},
		"imported in vain before":     {due(condition(clusterv1.ConditionImportSucceeded, metav1.ConditionFalse)), true, clusterv1.ReasonImportSucceed, ""},
		"joined":                      {due(condition(clusterv1.ConditionJoined, metav1.ConditionTrue)), false, "", ""},
		"had joined":                  {due(condition(clusterv1.ConditionJoined, metav1.ConditionFalse)), false, "", ""},
		"leaving":                     {due(func(s *State) { s.Cluster.DeletionTimestamp = &metav1.Time{} }), false, "", ""},
		"registers itself":            {due(createdBy(bootstrapUser)), false, "", ""},
		"registers with a token":      {due(createdBy("system:bootstrap:abcdef")), false, "", ""},
		"created by an administrator": {due(createdBy("system:bootstrapper")), true, clusterv1.ReasonImportSucceed, ""},
		"registered and was accepted": {due(createdBy(bootstrapUser), func(s *State) { s.Cluster.Spec.HubAcceptsClient = true }),
			true, clusterv1.ReasonImportSucceed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.due, tc.state.isDue())
			before := tc.state.Cluster.DeepCopy()
			plan := Decide(tc.state)
			require.Equal(t, before, tc.state.Cluster, "the input is not modified")
			require.Equal(t, tc.state.Failed != nil, plan.RequeueAfter == retry)
			if tc.reason == "" {
				require.Nil(t, plan.Object)
				return
			}
			conditions := plan.Object.(*clusterv1.ManagedCluster).Status.Conditions
			c := conditions[len(conditions)-1]
			require.Equal(t, clusterv1.ConditionImportSucceeded, c.Type)
			require.Equal(t, tc.reason == clusterv1.ReasonImportSucceed, c.Status == metav1.ConditionTrue)
			require.Equal(t, tc.reason, c.Reason)
			require.Contains(t, c.Message, tc.message)
			require.Equal(t, c.Status, hub.StatusOf(plan.Object.(*clusterv1.ManagedCluster), c.Type))
		})
	}
}

func TestTheClusterOfAManagedCluster(t *testing.T) {
	for text, want := range map[string]reconcile.Key{
		"":      {Namespace: "c1", Name: "c1"},
		"a/b":   {Namespace: "a", Name: "b"},
		"other": {Namespace: "c1", Name: "c1"},
	} {
		require.Equal(t, want, clusterOf(due(func(s *State) { s.Cluster.Annotations[clusterv1.AnnotationCAPICluster] = text }).Cluster), text)
	}
}

func TestValuesBecomeOptions(t *testing.T) {
	v, err := parseValues([]byte("images: {registry: example.org/ocm/, imagePullPolicy: Always}\nagentRights: narrow\n" +
		"klusterlet: {clusterName: c1, nodePlacement: {nodeSelector: {a: b}}, registrationConfiguration: {clientCertExpirationSeconds: 3600}}\n"))
	require.NoError(t, err)
	o, err := v.options("c1", "ghcr.io/kubectl-ocm/ocm-agent:v2")
	require.NoError(t, err)
	require.Equal(t, "example.org/ocm/ocm-agent:v2", o.Image)
	require.True(t, o.NarrowRights)
	require.Equal(t, map[string]string{"a": "b"}, o.Spec.NodePlacement.NodeSelector)
	require.EqualValues(t, 3600, o.Spec.RegistrationConfiguration.ClientCertExpirationSeconds)
	_, err = v.options("c2", "i:v1")
	require.ErrorContains(t, err, "klusterlet.clusterName must be c2")
	o, err = values{}.options("c1", "ghcr.io/kubectl-ocm/ocm-agent:v2")
	require.NoError(t, err)
	require.Equal(t, agent.Options{Image: "ghcr.io/kubectl-ocm/ocm-agent:v2", ClusterName: "c1"}, o)
}

// TestWrongValuesAreNamedAndNotQuoted: the Secret may hold a token.
func TestWrongValuesAreNamedAndNotQuoted(t *testing.T) {
	for text, want := range map[string]string{
		"noOperator: hush":         `no value "noOperator"`,
		"klusterlet: {mode: hush}": `no value "mode"`,
		"images: hush":             "images must be of type",
		"klusterlet: {nodePlacement: {tolerations: hush}}": "klusterlet.nodePlacement.tolerations must be of type",
		"{hush":                        "not valid YAML",
		"- hush":                       "must be of type",
		"a: 1\na: hush":                "not valid YAML",
		"agentRights: hush":            "agentRights must be default or narrow",
		"bootstrapHubKubeConfig: hush": "bootstrapHubKubeConfig: reading kubeconfig",
	} {
		_, err := parseValues([]byte(text))
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "hush", text)
	}
}

func TestTheImageOfTheAgentIsBesideThatOfTheHub(t *testing.T) {
	for hubs, want := range map[string]string{
		"ghcr.io/kubectl-ocm/ocm-hub:v1":        "ghcr.io/kubectl-ocm/ocm-agent:v1",
		"localhost:5000/ocm-hub:v1@sha256:0123": "localhost:5000/ocm-agent:v1",
		"localhost:5000/ocm-hub":                "ghcr.io/kubectl-ocm/ocm-agent:v9",
		"example.org/own:v1":                    "ghcr.io/kubectl-ocm/ocm-agent:v9",
		"":                                      "ghcr.io/kubectl-ocm/ocm-agent:v9",
	} {
		require.Equal(t, want, imageBeside(hubs, "v9"), hubs)
	}
}

// TestTextOfTheClusterIsNotShown: once the token was sent, the cluster could put it into the
// text of any answer.
func TestTextOfTheClusterIsNotShown(t *testing.T) {
	request := func(err error) error { return &url.Error{Op: "Patch", URL: "https://c", Err: err} }
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for want, err := range map[string]error{
		"the cluster answered with code 403": apierrors.NewForbidden(secrets.GroupResource(), "hush", errors.New("hush")),
		"the certificate of the cluster cannot be verified with the authority of its kubeconfig": request(
			&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"hush"}}, Host: "c"}}),
		"the cluster did not answer in time": request(&net.OpError{Op: "read", Err: syscall.ETIMEDOUT}),
		"dial tcp: connection refused":       request(refused),
		errNotReached.Error():                fmt.Errorf("decoding: hush"),
	} {
		require.EqualError(t, plain(err), want)
	}
	require.LessOrEqual(t, len(fail("R", "doing", errors.New(strings.Repeat("x", 4096))).message), maxMessage)
}

// The hub's network is not open to whoever writes a kubeconfig.
func TestAClusterSendsTheHubNowhereElse(t *testing.T) {
	asked := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.String() }))
	t.Cleanup(other.Close)
	server := httptest.NewTLSServer(http.RedirectHandler(other.URL+"/latest/meta-data", http.StatusFound))
	t.Cleanup(server.Close)
	there, err := connect(&kubeconfig.Config{Server: server.URL, CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})})
	require.NoError(t, err)
	_, err = there.find(t.Context(), "c1", &kubeconfig.Config{})
	require.EqualError(t, err, errNotReached.Error())
	require.Empty(t, asked)
}
