// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPortsOfAddresses(t *testing.T) {
	for address, want := range map[string]int64{"socks5://p": 1080, "http://p": 80, "https://p": 443, "https://p:0": 0, "https://p:70000": 0, "": 0} {
		port, ok := portOf(address)
		require.Equal(t, want > 0, ok, address)
		if ok {
			require.Equal(t, want, port, address)
		}
	}
}

func TestWithoutPortsEveryOneIsAllowed(t *testing.T) {
	allowed := func(ports ...int64) any {
		u := Policies{Klusterlet: "k", Namespace: "n", Apps: []string{"a"}, Ports: ports}.Object("allow-dns-and-api")
		egress, _, err := unstructured.NestedSlice(u.Object, "spec", "egress")
		require.NoError(t, err)
		all := egress[0].(map[string]any)["ports"].([]any)
		return all[len(all)-1]
	}
	require.Equal(t, map[string]any{"protocol": "TCP", "port": int64(7443)}, allowed(443, 7443))
	require.Equal(t, map[string]any{"protocol": "TCP"}, allowed())
}
