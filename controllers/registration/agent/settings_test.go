// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"reflect"
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
		"a name with a dot":       {func(s *Settings) { s.ClusterName = "a.b" }, `cluster name "a.b"`},
		"a name that is too long": {func(s *Settings) { s.ClusterName = strings.Repeat("a", 64) }, "cluster name"},
		"an http URL": {
			func(s *Settings) { s.ExternalServerURLs = []ServerURL{{URL: "http://x"}} },
			"https://",
		},
		"a certificate life below 3600": {func(s *Settings) { s.CertificateSeconds = 3599 }, "3600"},
		"a negative certificate life":   {func(s *Settings) { s.CertificateSeconds = -1 }, "3600"},
		"no health check period":        {func(s *Settings) { s.HealthPeriod = 0 }, "greater than 0"},
		"a negative number of claims":   {func(s *Settings) { s.MaxClaims = -1 }, "negative"},
		"eleven suffixes": {
			func(s *Settings) { s.ReservedSuffixes = strings.Split(strings.Repeat("a,", 11), ",") },
			"at most 10",
		},
		"an empty suffix":              {func(s *Settings) { s.ReservedSuffixes = []string{""} }, "1 to 64"},
		"an add-on token below 600":    {func(s *Settings) { s.AddOnTokenSeconds = 599 }, "at least 600"},
		"a negative add-on token life": {func(s *Settings) { s.AddOnTokenSeconds = -1 }, "at least 600"},
		"an unknown add-on driver":     {func(s *Settings) { s.AddOnDriver = "x" }, "csr or token"},
		"one hub to choose from":       {func(s *Settings) { s.Hubs = []string{"a"} }, "must be 2 to 10"},
		"eleven hubs": {
			func(s *Settings) { s.Hubs = strings.Split("a,b,c,d,e,f,g,h,i,j,k", ",") },
			"must be 2 to 10",
		},
		"a hub twice":             {func(s *Settings) { s.Hubs = []string{"a", "a"} }, "listed twice"},
		"a hub that is no secret": {func(s *Settings) { s.Hubs = []string{"a", "B/c"} }, "is not the name of a secret"},
		"a hub in the agent's secret": {
			func(s *Settings) { s.Hubs = []string{"a", "hub-kubeconfig-secret"} },
			"its own access",
		},
		"a label that is none": {
			func(s *Settings) { s.Labels = map[string]string{"a": "no blanks"} },
			`cluster label "a"`,
		},
		"a bootstrap secret of its own": {
			func(s *Settings) { s.BootstrapSecret = "hub-kubeconfig-pending" },
			"its own access",
		},
		"no time for a hub": {func(s *Settings) { s.Hubs = []string{"a", "b"} }, "hub connection timeout"},
		"a suffix of 65 characters": {
			func(s *Settings) { s.ReservedSuffixes = []string{strings.Repeat("a", 65)} },
			"1 to 64",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			tc.change(&s)
			require.ErrorContains(t, s.Validate(), tc.want)
		})
	}
}

func TestWhatMattersOnlyOnTheWayConcernsNoSession(t *testing.T) {
	way := map[string]bool{
		"ExternalServerURLs": true,
		"Annotations":        true,
		"Labels":             true,
		"BootstrapSecret":    true,
		"Hubs":               true,
		"HubTimeout":         true,
	}
	var s Settings
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Settings]()) {
		field := reflect.ValueOf(&s).Elem().FieldByIndex(f.Index)
		switch field.Kind() {
		case reflect.String:
			field.SetString("x")
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Int, reflect.Int32, reflect.Int64:
			field.SetInt(1)
		case reflect.Slice:
			field.Set(reflect.MakeSlice(field.Type(), 1, 1))
		case reflect.Map:
			field.Set(reflect.MakeMap(field.Type()))
		default:
			require.Fail(t, "a setting of a kind that this test does not know", f.Name)
		}
	}
	serving := reflect.ValueOf(s.Serving())
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Settings]()) {
		require.Equal(t, way[f.Name], serving.FieldByIndex(f.Index).IsZero(), f.Name)
	}
}

func TestOnlyAnnotationsOfTheAgentAreKept(t *testing.T) {
	kept := KeepAnnotations(map[string]string{"agent.open-cluster-management.io/a": "1", "z": "2", "b": "3"})
	require.Equal(t, map[string]string{"agent.open-cluster-management.io/a": "1"}, kept)
	require.Nil(t, KeepAnnotations(nil))
}

func TestIdentityIsTheSubjectOfTheContract(t *testing.T) {
	id := Identity{Cluster: "c1", Agent: "a1"}
	require.Equal(t, "system:open-cluster-management:c1:a1", id.CommonName())
	require.Equal(
		t, []string{"system:open-cluster-management:c1", "system:open-cluster-management:managed-clusters"},
		id.Organizations(),
	)
}
