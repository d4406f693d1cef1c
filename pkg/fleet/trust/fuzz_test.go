// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FuzzParseInfo: what a server that nobody has verified yet serves as cluster-info is never
// taken as signed unless the holder of the token's secret signed it.
func FuzzParseInfo(f *testing.F) {
	const token = "abcdef.0123456789abcdef"
	whole := "clusters: [{name: '', cluster: {server: 'https://h:6443', certificate-authority-data: YQ==}}]"
	for _, seed := range [][2]string{
		{"", ""}, {whole, ""}, {whole, "a..b"}, {whole, "eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9..AAAA"}, {"clusters: [{cluster: null}]", ""},
		{"clusters: 1", "."}, {"{", ".."}, {whole, "eyJhbGciOiJub25lIn0.."}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, signature string) {
		info, err := ParseInfo(&unstructured.Unstructured{Object: map[string]any{
			"data": map[string]any{"kubeconfig": text, "jws-kubeconfig-abcdef": signature}}}, token)
		if err != nil {
			return
		}
		require.NotEmpty(t, info.CA)
		require.False(t, info.signed, "somebody who has no token signed it")
		require.Empty(t, signature, "a wrong signature is passed over")
	})
}
