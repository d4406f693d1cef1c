// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{"run", "--klusterlet=second", "--namespace=open-cluster-management-x", "-v=3"})
	require.NoError(t, err)
	require.Equal(t, []any{"run", "second", "open-cluster-management-x", 3}, []any{o.command, o.klusterlet, o.namespace, o.verbosity})

	o, err = parse([]string{"agent", "--spoke-cluster-name=c1", "--agent-id=a1", "--spoke-external-server-urls=https://a,https://b",
		"--cluster-annotations=agent.open-cluster-management.io/x=1,y=2", "--client-cert-expiration-seconds=3600", "--cluster-healthcheck-period=10s",
		"--max-custom-cluster-claims=5", "--reserved-cluster-claim-suffixes=.x,.y", "--feature-gates=ClusterClaim=false,AddonManagement=true"})
	require.NoError(t, err)
	require.Empty(t, o.klusterlet)
	require.Empty(t, cmp.Diff(agent.Settings{
		ClusterName: "c1", AgentName: "a1", ExternalServerURLs: []agent.ServerURL{{URL: "https://a"}, {URL: "https://b"}},
		Annotations: map[string]string{"agent.open-cluster-management.io/x": "1"}, CertificateSeconds: 3600, HealthPeriod: 10 * time.Second,
		MaxClaims: 5, ReservedSuffixes: []string{".x", ".y"},
	}, o.settings))
}

func TestBadCommandLinesSayWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing":                 {nil, "a command is required"},
		"an unknown command":      {[]string{"walk"}, `there is no command "walk"`},
		"an unknown flag":         {[]string{"run", "--walk"}, "unknown flag: --walk"},
		"an argument":             {[]string{"run", "fast"}, `unexpected argument "fast"`},
		"a flag of the other one": {[]string{"run", "--agent-id=x"}, "unknown flag"},
		"a short certificate":     {[]string{"agent", "--client-cert-expiration-seconds=10"}, "3600"},
		"no period":               {[]string{"agent", "--cluster-healthcheck-period=0"}, "greater than 0"},
		"an http URL":             {[]string{"agent", "--spoke-external-server-urls=http://x"}, "https://"},
		"half a gate":             {[]string{"agent", "--feature-gates=ClusterClaim"}, "Name=true"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			require.Equal(t, exitUsage, run(t.Context(), tc.args, &stdout, &stderr))
			require.Contains(t, stderr.String(), tc.want)
			require.Contains(t, stderr.String(), "Usage:")
			require.Empty(t, stdout.String())
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"run", "--help"}, {"version"}} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, exitOK, run(t.Context(), args, &stdout, &stderr))
		require.NotEmpty(t, stdout.String())
		require.Empty(t, stderr.String())
	}
}

func TestOutsideAPodItSaysSo(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	var stdout, stderr bytes.Buffer
	require.Equal(t, exitError, run(t.Context(), []string{"run"}, &stdout, &stderr))
	require.Contains(t, stderr.String(), "this is no pod")
}
