// SPDX-License-Identifier: Apache-2.0

package addonkit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSpecHashIsThatOfTheField(t *testing.T) {
	cases := map[string]struct{ object, want string }{
		"nothing said": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"status":{"a":1}}`,
			"44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
		},
		"a spec": {`{"kind":"Any","spec":{"test":1}}`, "af144391b79b4b07bd7c579980ae9ed42dc8e34f7babebbf3fd08cacb578fba4"},
		"data":   {`{"kind":"Any","data":{"test":1}}`, "766dd25b5177d7bd3673d1bc2d015b74f9fefec024319e5b6a49eef9236bbfa1"},
		"an empty field": {
			`{"spec":{"proxyConfig":{},"customizedVariables":[{"value":"test","name":"test"}],"agentInstallNamespace":"open-cluster-management-agent-addon"}}`,
			"ea4e6089e8b2f584c1cd8b86e16a15df3186b30744f433ede7436091c93a4cc7",
		},
		"without that field": {
			`{"spec":{"customizedVariables":[{"value":"test","name":"test"}],"agentInstallNamespace":"open-cluster-management-agent-addon"}}`,
			"daef34d10f53bf4e0b0550286fc451c9bc2d8f78fdc1383249d503ce9e489650",
		},
		"signs of HTML": {`{"spec":{"a":"<&>"}}`, "fffbdecfd319244a8734d52fd66cec09db82b5a444fe27e590d022639475b0d6"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			if !strings.Contains(tc.object, `"kind"`) {
				tc.object = strings.Replace(tc.object, "{", `{"kind":"Any",`, 1)
			}
			require.NoError(t, u.UnmarshalJSON([]byte(tc.object)))
			got, err := SpecHash(u.Object)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}
