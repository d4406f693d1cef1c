// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/lock"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

func TestParse(t *testing.T) {
	o, err := parse([]string{"run", "--klusterlet=second", "--namespace=open-cluster-management-x", "-v=3"})
	require.NoError(t, err)
	require.Equal(
		t, []any{"run", "second", "open-cluster-management-x", 3}, []any{o.name, o.klusterlet, o.namespace, o.verbosity},
	)

	o, err = parse([]string{"agent", "--spoke-cluster-name=c1", "--agent-id=a1", "--spoke-external-server-urls=https://a,https://b",
		"--cluster-annotations=agent.open-cluster-management.io/x=1,y=2", "--client-cert-expiration-seconds=3600",
		"--cluster-healthcheck-period=10s",
		"--max-custom-cluster-claims=5", "--reserved-cluster-claim-suffixes=.x,.y",
		"--feature-gates=ClusterClaim=false,AddonManagement=true",
		"--addon-kubeclient-registration-auth=token", "--addon-token-expiration-seconds=600"})
	require.NoError(t, err)
	require.Empty(t, o.klusterlet)
	require.Empty(t, cmp.Diff(agent.Settings{
		ClusterName: "c1", AgentName: "a1", ExternalServerURLs: []agent.ServerURL{{URL: "https://a"}, {URL: "https://b"}},
		Annotations: map[string]string{"agent.open-cluster-management.io/x": "1"}, CertificateSeconds: 3600,
		HealthPeriod: 10 * time.Second,
		MaxClaims:    5, ReservedSuffixes: []string{".x", ".y"},
		AddOns: true, AddOnDriver: "token", AddOnTokenSeconds: 600, Workers: 10, MaxRawFeedback: 1024,
		EvictionGrace: time.Hour, BootstrapSecret: "bootstrap-hub-kubeconfig",
	}, o.settings))
}

// TestDeploymentsOfOpenClusterManagement checks the arguments with which its operator starts the
// agents of each mode.
func TestDeploymentsOfOpenClusterManagement(t *testing.T) {
	apart := []string{"--kube-api-qps=50", "--kube-api-burst=100"}
	works := []string{
		"--workload-source-driver=kube", "--workload-source-config=/spoke/hub-kubeconfig/kubeconfig", "--agent-id=uid",
		"--status-sync-interval=60s", "--hub-kube-api-qps=50", "--hub-kube-api-burst=100",
		"--appliedmanifestwork-eviction-grace-period=10m", "--feature-gates=RawFeedbackJsonString=true",
	}
	onFile := []string{"--terminate-on-files=/spoke/hub-kubeconfig/kubeconfig"}
	joining := []string{
		"--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig", "--spoke-external-server-urls=https://c1", "--client-cert-expiration-seconds=7200",
		"--feature-gates=ClusterClaim=false", "--addon-kubeclient-registration-auth=token", "--registration-auth=csr",
	}
	hosted := []string{"--spoke-kubeconfig=/spoke/config/kubeconfig", "--terminate-on-files=/spoke/config/kubeconfig"}
	for name, tc := range map[string]struct {
		args     []string
		lock     string
		register bool
		works    bool
	}{
		"registration": {slices.Concat([]string{"registration"}, joining, apart), "registration-agent-lock", true, false},
		"work":         {slices.Concat([]string{"work"}, works, onFile, apart), "work-agent-lock", false, true},
		"singleton":    {slices.Concat([]string{"agent"}, joining, works, apart), "klusterlet-agent-lock", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parse(append(tc.args, "--spoke-cluster-name=c1"))
			require.NoError(t, err)
			require.Equal(t, []any{tc.lock, tc.register, tc.works}, []any{o.lock, o.registration, o.works})
			require.Equal(t, []any{"c1", tc.register, tc.works}, []any{
				o.settings.ClusterName, o.settings.CertificateSeconds == 7200, o.settings.EvictionGrace == 10*time.Minute && o.settings.RawFeedback,
			})
			require.Empty(t, o.spokeKubeconfig)

			o, err = parse(slices.Concat(tc.args, hosted))
			require.NoError(t, err)
			require.Equal(t, "/spoke/config/kubeconfig", o.spokeKubeconfig)
			require.Contains(t, o.terminateOn, "/spoke/config/kubeconfig")
		})
	}
}

func TestFlagsOfEveryProcess(t *testing.T) {
	for _, c := range commands {
		o, err := parse([]string{c.name, "--terminate-on-files=/a", "--terminate-on-files=/b,c", "--disable-leader-election",
			"--leader-election-lease-duration=137s", "--leader-election-renew-deadline=107s", "--leader-election-retry-period=1s",
			"--tls-min-version=VersionTLS13", "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_AES_128_GCM_SHA256"})
		require.NoError(t, err)
		require.Equal(t, []string{"/a", "/b,c"}, o.terminateOn)
		require.True(t, o.unlocked)
		require.Equal(t, lock.Times{Duration: 137 * time.Second, Patience: 107 * time.Second, Period: time.Second, Retry: time.Second}, o.times)
		require.NotZero(t, o.tls)
	}
	o, err := parse([]string{"run"})
	require.NoError(t, err)
	require.Equal(t, []any{lockTimes, false, observe.TLS{}}, []any{o.times, o.unlocked, o.tls})
}

func TestFlagsOfTheWorkAgent(t *testing.T) {
	o, err := parse([]string{"agent", "--workload-agent-workers=7", "--max-json-raw-length=100", "--feature-gates=RawFeedbackJsonString=true",
		"--status-sync-interval=60s", "--max-feedback-watch=50", "--appliedmanifestwork-eviction-grace-period=30m"})
	require.NoError(t, err)
	s := o.settings
	require.Equal(
		t, []any{7, 100, true, 30 * time.Minute}, []any{s.Workers, s.MaxRawFeedback, s.RawFeedback, s.EvictionGrace},
	)
	require.NotContains(t, o.usage(), "status-sync-interval", "flags without effect are hidden")
}

func TestAddOnsAreServedByCertificatesUnlessToldOtherwise(t *testing.T) {
	o, err := parse([]string{"agent"})
	require.NoError(t, err)
	require.Equal(
		t, []any{true, addonv1alpha1.DriverTypeCSR, int64(31536000)},
		[]any{o.settings.AddOns, o.settings.AddOnDriver, o.settings.AddOnTokenSeconds},
	)
	o, err = parse([]string{"agent", "--feature-gates=AddonManagement=false"})
	require.NoError(t, err)
	require.False(t, o.settings.AddOns)
}

func TestSeveralHubsOnTheCommandLine(t *testing.T) {
	o, err := parse([]string{"agent", "--cluster-name=c1", "--feature-gates=MultipleHubs=true", "--hub-connection-timeout-seconds=30",
		"--bootstrap-kubeconfigs=/spoke/hub-1/kubeconfig", "--bootstrap-kubeconfigs=hub-2"})
	require.NoError(t, err)
	require.Equal(t, "c1", o.settings.ClusterName)
	require.Equal(t, []string{"hub-1", "hub-2"}, o.settings.Hubs)
	require.Equal(t, 30*time.Second, o.settings.HubTimeout)

	o, err = parse([]string{"agent", "--bootstrap-kubeconfig-secret=mine", "--registration-auth=csr"})
	require.NoError(t, err)
	require.Equal(t, "mine", o.settings.BootstrapSecret)
}

func TestBadCommandLinesSayWhy(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing":                 {nil, "a command is required"},
		"an unknown command":      {[]string{"walk"}, `unknown command "walk"`},
		"an unknown flag":         {[]string{"run", "--walk"}, "unknown flag: --walk"},
		"an argument":             {[]string{"run", "fast"}, `unexpected argument "fast"`},
		"a flag of the other one": {[]string{"run", "--agent-id=x"}, "unknown flag"},
		"a short certificate":     {[]string{"agent", "--client-cert-expiration-seconds=10"}, "3600"},
		"no period":               {[]string{"agent", "--cluster-healthcheck-period=0"}, "greater than 0"},
		"an http URL":             {[]string{"agent", "--spoke-external-server-urls=http://x"}, "https://"},
		"a short token":           {[]string{"agent", "--addon-token-expiration-seconds=599"}, "at least 600"},
		"an unknown driver":       {[]string{"agent", "--addon-kubeclient-registration-auth=spiffe"}, "csr or token"},
		"half a gate":             {[]string{"agent", "--feature-gates=ClusterClaim"}, "Name=true"},
		"an unknown gate": {
			[]string{"agent", "--feature-gates=Walk=true"},
			"are AddonManagement, ClusterClaim, ClusterProperty, ClusterProxy, ExecutorValidatingCaches, " +
				"MultipleHubs, RawFeedbackJsonString, V1beta1CSRAPICompatibility",
		},
		"no worker": {
			[]string{"agent", "--workload-agent-workers=0"},
			"--workload-agent-workers=0: must be 1 or more",
		},
		"no grace": {
			[]string{"agent", "--appliedmanifestwork-eviction-grace-period=0s"},
			"must be greater than 0",
		},
		"a raw value too long": {
			[]string{"agent", "--max-json-raw-length=1025"},
			"--max-json-raw-length=1025: must be 1 to 1024, as the API requires",
		},
		"a gate nobody serves": {[]string{"agent", "--feature-gates=V1beta1CSRAPICompatibility=true"}, "is not served"},
		"several hubs, no gate": {
			[]string{"agent", "--bootstrap-kubeconfigs=a", "--bootstrap-kubeconfigs=b"},
			"MultipleHubs=true",
		},
		"the gate and one hub": {
			[]string{"agent", "--feature-gates=MultipleHubs=true", "--bootstrap-kubeconfigs=a"},
			"1 given, the gate MultipleHubs needs two or more",
		},
		"the gate and no hub": {[]string{"agent", "--feature-gates=MultipleHubs=true"}, "0 given"},
		"a file of no secret": {
			[]string{
				"agent", "--feature-gates=MultipleHubs=true", "--bootstrap-kubeconfigs=a", "--bootstrap-kubeconfigs=/etc/x",
			},
			"must be the name of a secret",
		},
		"one hub twice": {
			[]string{"agent", "--feature-gates=MultipleHubs=true", "--bootstrap-kubeconfigs=a", "--bootstrap-kubeconfigs=a"},
			"listed twice",
		},
		"no time for a hub": {
			[]string{
				"agent", "--feature-gates=MultipleHubs=true", "--bootstrap-kubeconfigs=a", "--bootstrap-kubeconfigs=b",
				"--hub-connection-timeout-seconds=0",
			},
			"greater than 0",
		},
		"AWS without an ARN": {
			[]string{"agent", "--registration-auth=awsirsa"},
			"needs --hub-cluster-arn and --managed-cluster-arn",
		},
		"AWS with ARNs": {
			[]string{"agent", "--registration-auth=awsirsa", "--hub-cluster-arn=x", "--managed-cluster-arn=y"},
			"not supported by this agent: use csr",
		},
		"a role without AWS": {
			[]string{"agent", "--managed-cluster-role-suffix=x"},
			"belong to --registration-auth=awsirsa",
		},
		"works without a hub of Kubernetes": {
			[]string{"work", "--workload-source-driver=grpc"},
			"--workload-source-driver=grpc is not supported by this agent: use kube",
		},
		"a client of events":            {[]string{"work", "--cloudevents-client-id=x"}, "which this agent does not support"},
		"a gate of the other half":      {[]string{"work", "--feature-gates=ClusterClaim=true"}, "are ExecutorValidatingCaches, RawFeedbackJsonString"},
		"a gate of works":               {[]string{"registration", "--feature-gates=RawFeedbackJsonString=true"}, "does not exist"},
		"works by the registration":     {[]string{"registration", "--workload-source-driver=kube"}, "unknown flag"},
		"registration by the works":     {[]string{"work", "--bootstrap-kubeconfig=/spoke/bootstrap/kubeconfig"}, "unknown flag"},
		"the Klusterlet's other place":  {[]string{"run", "--spoke-kubeconfig=x"}, "unknown flag"},
		"a bootstrap file of no secret": {[]string{"registration", "--bootstrap-kubeconfig=/etc/x"}, "name it in --bootstrap-kubeconfig-secret"},
		"a name that is none":           {[]string{"work", "--spoke-cluster-name=C_1"}, "cluster name"},
		"a lock without patience":       {[]string{"work", "--leader-election-lease-duration=30s"}, "each must be longer than the next"},
		"an unknown version of TLS":     {[]string{"run", "--tls-min-version=1.2"}, "must be one of VersionTLS10"},
		"a weak cipher":                 {[]string{"run", "--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA"}, "has known weaknesses"},
		"ARNs without AWS":              {[]string{"agent", "--hub-cluster-arn=x"}, "belong to --registration-auth=awsirsa"},
		"gRPC":                          {[]string{"agent", "--registration-auth=grpc"}, "not supported by this agent: use csr"},
		"a file for gRPC":               {[]string{"agent", "--grpc-config=x"}, "belong to --registration-auth=grpc"},
		"no way to register":            {[]string{"agent", "--registration-auth=walk"}, "does not exist"},
		"another hub secret":            {[]string{"agent", "--hub-kubeconfig-secret=x"}, "is not supported"},
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
	require.Contains(t, stderr.String(), "this process does not run in a pod")
}

func TestFlagsOfTheOperator(t *testing.T) {
	flags := []string{"--enable-sync-labels", "--disable-default-addon-namespace"}
	o, err := parse(append([]string{"operator"}, flags...))
	require.NoError(t, err)
	require.True(t, o.syncLabels && o.noAddOns)
	o, err = parse([]string{"operator"})
	require.NoError(t, err)
	require.False(t, o.syncLabels || o.noAddOns)
	for _, flag := range flags {
		_, err = parse([]string{"run", flag})
		require.ErrorContains(t, err, "unknown flag")
	}
}
