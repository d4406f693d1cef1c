// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParseValues: values are used for the cluster that they are meant for or refused, and a
// refusal shows nothing of what is in them.
func FuzzParseValues(f *testing.F) {
	const marker = "s3cr3tmarker"
	for _, seed := range []string{"", "{}", "null", "[]", "agentRights: narrow", "agentRights: " + marker, "klusterlet: {clusterName: c1}",
		"images: {registry: a/b/, tag: v1, overrides: {operatorImage: x}}", "images: {tag: 1}", "bootstrapHubKubeConfig: " + marker,
		"klusterlet: {nodePlacement: {tolerations: [{key: a}]}}", "a: &a [*a]", "a: 1\na: 2", "? " + marker,
		"klusterlet: {registrationConfiguration: {featureGates: 1}}",
		"bootstrapHubKubeConfig: |\n  clusters: [{cluster: {server: 'https://h'}}]\n  users: [{user: {token: " + marker + "}}]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := parseValues(text)
		if err != nil {
			if strings.Count(string(text), marker) == 1 && strings.Contains(string(text), ": "+marker) {
				require.NotContains(t, err.Error(), marker, "a refusal quotes a value")
			}
			return
		}
		o, err := v.options("c1", "registry/agent:v1")
		if err != nil {
			return
		}
		require.Equal(t, "c1", o.ClusterName)
		require.NotEmpty(t, o.Image)
	})
}
