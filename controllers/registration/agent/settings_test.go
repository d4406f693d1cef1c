// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestValidate(t *testing.T) {
	good := func() Settings { return Settings{HealthPeriod: time.Minute, MaxClaims: 20} }
	require.NoError(t, good().Validate())
	for name, tc := range map[string]struct {
		change func(*Settings)
		want   string
	}{
		"a name with a dot":             {func(s *Settings) { s.ClusterName = "a.b" }, `cluster name "a.b"`},
		"a name that is too long":       {func(s *Settings) { s.ClusterName = strings.Repeat("a", 64) }, "cluster name"},
		"an http URL":                   {func(s *Settings) { s.ExternalServerURLs = []ServerURL{{URL: "http://x"}} }, "https://"},
		"a certificate life below 3600": {func(s *Settings) { s.CertificateSeconds = 3599 }, "3600"},
		"a negative certificate life":   {func(s *Settings) { s.CertificateSeconds = -1 }, "3600"},
		"no health check period":        {func(s *Settings) { s.HealthPeriod = 0 }, "greater than 0"},
		"a negative number of claims":   {func(s *Settings) { s.MaxClaims = -1 }, "negative"},
		"eleven suffixes":               {func(s *Settings) { s.ReservedSuffixes = strings.Split(strings.Repeat("a,", 11), ",") }, "at most 10"},
		"an empty suffix":               {func(s *Settings) { s.ReservedSuffixes = []string{""} }, "1 to 64"},
		"a suffix of 65 characters":     {func(s *Settings) { s.ReservedSuffixes = []string{strings.Repeat("a", 65)} }, "1 to 64"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			tc.change(&s)
			require.ErrorContains(t, s.Validate(), tc.want)
		})
	}
}

func TestOnlyAnnotationsOfTheAgentAreKept(t *testing.T) {
	kept, dropped := KeepAnnotations(map[string]string{"agent.open-cluster-management.io/a": "1", "z": "2", "b": "3"})
	require.Equal(t, map[string]string{"agent.open-cluster-management.io/a": "1"}, kept)
	require.Equal(t, []string{"b", "z"}, dropped)
	kept, dropped = KeepAnnotations(nil)
	require.Nil(t, kept)
	require.Nil(t, dropped)
}

func TestIdentityIsTheSubjectOfTheContract(t *testing.T) {
	id := Identity{Cluster: "c1", Agent: "a1"}
	require.Equal(t, "system:open-cluster-management:c1:a1", id.CommonName())
	require.Equal(t, []string{"system:open-cluster-management:c1", "system:open-cluster-management:managed-clusters"}, id.Organizations())
}
