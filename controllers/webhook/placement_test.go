// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
)

// placement returns a Placement in its wire form, with a spec in JSON.
func placement(t *testing.T, name, spec string) json.RawMessage {
	t.Helper()
	raw := fmt.Appendf(
		nil,
		`{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement","metadata":{"name":%q,"namespace":"apps"},"spec":%s}`,
		name, spec,
	)
	require.True(t, json.Valid(raw), spec)
	return raw
}

func TestPlacementsThatCannotBeFollowedAreRefused(t *testing.T) {
	h := server(&stated{}, all)
	for what, tc := range map[string]struct{ name, spec, field string }{
		"a negative number":           {"p", `{"numberOfClusters":-1}`, "spec.numberOfClusters"},
		"an empty key without Exists": {"p", `{"tolerations":[{"operator":"Equal"}]}`, "spec.tolerations[0]"},
		"Exists with a value": {
			"p",
			`{"tolerations":[{"key":"k","operator":"Exists","value":"v"}]}`,
			"spec.tolerations[0]",
		},
		"an unknown mode": {"p", `{"prioritizerPolicy":{"mode":"additive"}}`, "spec.prioritizerPolicy.mode"},
		"an unknown prioritizer": {
			"p",
			`{"prioritizerPolicy":{"configurations":[{"scoreCoordinate":{"type":"BuiltIn","builtIn":"Spread"},"weight":1}]}}`,
			"spec.prioritizerPolicy.configurations[0]",
		},
		"scores of no add-on": {
			"p",
			`{"prioritizerPolicy":{"configurations":[{"scoreCoordinate":{"type":"AddOn"},"weight":1}]}}`,
			"spec.prioritizerPolicy.configurations[0]",
		},
		"a size in digits as text": {
			"p",
			`{"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":"20"}}}`,
			"spec.decisionStrategy.groupStrategy.clustersPerDecisionGroup",
		},
		"an expression that does not compile": {
			"p",
			`{"predicates":[{"requiredClusterSelector":{"celSelector":{"celExpressions":["nonsense("]}}}]}`,
			"spec.predicates[0].requiredClusterSelector.celSelector",
		},
		"an operator that no selector has": {
			"p",
			`{"predicates":[{"requiredClusterSelector":{"labelSelector":{"matchExpressions":[{"key":"a","operator":"Foo"}]}}}]}`,
			"spec.predicates[0].requiredClusterSelector.labelSelector",
		},
		"a name that no label can be": {strings.Repeat("n", 64), `{}`, "metadata.name"},
	} {
		t.Run(what, func(t *testing.T) {
			made := send(t, h, webhook.PathValidatePlacement, nil, placement(t, tc.name, tc.spec), authenticationv1.UserInfo{})
			require.False(t, made.Allowed)
			require.EqualValues(t, 400, made.Result.Code)
			require.Contains(t, made.Result.Message, tc.field)
			// A stored spec can be written unchanged, for updates of metadata and status.
			kept := send(
				t, h, webhook.PathValidatePlacement, placement(t, tc.name, tc.spec), placement(t, tc.name, tc.spec),
				authenticationv1.UserInfo{},
			)
			require.True(t, kept.Allowed, "%+v", kept.Result)
			require.Empty(t, kept.Warnings)
			// It can also be corrected.
			require.True(
				t,
				send(
					t, h, webhook.PathValidatePlacement, placement(t, tc.name, tc.spec),
					placement(t, tc.name, `{"numberOfClusters":1}`), authenticationv1.UserInfo{},
				).Allowed,
			)
			if tc.spec != `{}` {
				worse := send(
					t, h, webhook.PathValidatePlacement, placement(t, tc.name, `{}`), placement(t, tc.name, tc.spec),
					authenticationv1.UserInfo{},
				)
				require.False(t, worse.Allowed, "a change for the worse is refused")
			}
		})
	}
}

func TestPlacementsOfExistingClientsAreAdmitted(t *testing.T) {
	h := server(&stated{}, all)
	for what, spec := range map[string]string{
		"what a typed client sends": `{"prioritizerPolicy":{},"spreadPolicy":{},"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":0}}}`,
		"a prioritizer of no weight": `{"prioritizerPolicy":{"mode":"Additive","configurations":[
			{"scoreCoordinate":{"type":"BuiltIn","builtIn":"Anything"},"weight":0}]}}`,
		"no clusters":                 `{"numberOfClusters":0}`,
		"the usual toleration":        `{"tolerations":[{"key":"cluster.open-cluster-management.io/unreachable","operator":"Exists"}]}`,
		"a toleration with a default": `{"tolerations":[{"key":"cluster.open-cluster-management.io/unreachable","operator":"Equal"}]}`,
	} {
		t.Run(what, func(t *testing.T) {
			got := send(t, h, webhook.PathValidatePlacement, nil, placement(t, "p", spec), authenticationv1.UserInfo{})
			require.True(t, got.Allowed, "%+v", got.Result)
		})
	}
}

func TestManyMistakesAreToldInFew(t *testing.T) {
	var list []string
	for range 30 {
		list = append(list, `{"operator":"Equal"}`)
	}
	got := send(
		t, server(&stated{}, all), webhook.PathValidatePlacement, nil,
		placement(t, "p", `{"tolerations":[`+strings.Join(list, ",")+`]}`), authenticationv1.UserInfo{},
	)
	require.False(t, got.Allowed)
	require.Contains(t, got.Result.Message, "and 25 more")
}

func TestSetsThatAreNotBoundAreWarnedOf(t *testing.T) {
	const none = "namespace c1 has no ManagedClusterSetBinding, so nothing is selected; " +
		"bind a set: kubectl ocm clusterset bind SET -n c1"
	dev := `spec.clusterSets[1]: namespace c1 has no ManagedClusterSetBinding "dev", ` +
		`so nothing is selected from that set; kubectl ocm clusterset bind dev -n c1`
	const spec = `{"clusterSets":["prod","dev"]}`
	for what, tc := range map[string]struct {
		spec         string
		cached, live []string
		broken       error
		want         []string
		asked        int
	}{
		"all are bound":            {spec, []string{"dev", "other", "prod"}, nil, nil, nil, 1},
		"none is named":            {`{}`, []string{"other"}, nil, nil, nil, 1},
		"one is not bound":         {spec, []string{"prod"}, []string{"prod"}, nil, []string{dev}, 2},
		"one was just bound":       {spec, []string{"prod"}, []string{"prod", "dev"}, nil, nil, 2},
		"there is none":            {spec, nil, nil, nil, []string{none}, 2},
		"there is none to choose":  {`{}`, nil, nil, nil, []string{none}, 2},
		"there was one just now":   {`{}`, nil, []string{"other"}, nil, nil, 2},
		"nobody knows":             {spec, nil, nil, errors.New("away"), nil, 1},
		"what is refused is quiet": {`{"numberOfClusters":-1}`, nil, nil, nil, nil, 0},
	} {
		t.Run(what, func(t *testing.T) {
			asked := 0
			h := webhook.NewServer(webhook.Options{Hub: &stated{}, Features: func() webhook.Features { return all },
				Bound: func(_ context.Context, namespace string, live bool) ([]string, error) {
					asked++
					require.Equal(t, "c1", namespace)
					if live {
						return tc.live, tc.broken
					}
					return tc.cached, tc.broken
				}}).Handler()
			got := send(t, h, webhook.PathValidatePlacement, nil, placement(t, "p", tc.spec), authenticationv1.UserInfo{})
			require.Equal(t, tc.want, got.Warnings)
			require.Equal(t, tc.asked, asked)
			kept := send(
				t, h, webhook.PathValidatePlacement, placement(t, "p", tc.spec), placement(t, "p", tc.spec),
				authenticationv1.UserInfo{},
			)
			require.Empty(t, kept.Warnings)
			require.Equal(t, tc.asked, asked, "an unchanged spec is not checked")
		})
	}
}
