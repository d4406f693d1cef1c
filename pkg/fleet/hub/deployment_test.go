// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

func TestWhatSomebodyElsePutIntoTheHubIsNamed(t *testing.T) {
	const fields = `managedFields: [{manager: kubectl-ocm, operation: Apply, fieldsV1: {"f:spec": {"f:replicas": {}, "f:template": {"f:image": {}}}}}]`
	const lost = `managedFields: [{manager: kubectl-ocm, operation: Apply, fieldsV1: {"f:spec": {"f:template": {}}}}]`
	for name, tc := range map[string]struct{ text, want string }{
		"as installed": {`{metadata: {name: cluster-manager, ` + fields +
			`}, spec: {replicas: 1, template: {spec: {containers: [{name: cluster-manager, image: i}]}}}}`, ""},
		"a container before ours": {
			`{metadata: {name: cluster-manager, ` + fields +
				`}, spec: {replicas: 1, template: {spec: {containers: [{name: x, image: j}, {name: cluster-manager, image: i}]}}}}`,
			"container x",
		},
		"an init container": {
			`{metadata: {name: cluster-manager, ` + fields +
				`}, spec: {replicas: 1, template: {spec: {initContainers: [{name: x}], containers: [{name: cluster-manager, image: i}]}}}}`,
			"init container x",
		},
		"replicas and image": {
			`{metadata: {name: cluster-manager, ` + lost +
				`}, spec: {replicas: 3, template: {spec: {containers: [{name: x, image: j}, {name: cluster-manager, image: bad}]}}}}`,
			"container x, replicas: 3, image bad",
		},
		"installed by another tool": {
			`{metadata: {name: cluster-manager}, spec: {replicas: 3, template: {spec: {containers: [{name: cluster-manager, image: mirror}]}}}}`,
			"",
		},
	} {
		var d appsv1.Deployment
		require.NoError(t, yaml.Unmarshal([]byte(tc.text), &d), name)
		require.Equal(t, tc.want, ForeignParts(&d), name)
	}
}
