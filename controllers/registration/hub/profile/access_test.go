// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
)

// entries are access providers as JSON.
func entries(texts ...string) (out []runtime.RawExtension) {
	for _, text := range texts {
		out = append(out, runtime.RawExtension{Raw: []byte(text)})
	}
	return out
}

func TestTheWayToAClusterIsTheFirstUsableOne(t *testing.T) {
	extensions := `"extensions":[{"name":"client.authentication.k8s.io/exec","extension":{"clusterName":"c1"}}]`
	plain := `{"name":"open-cluster-management","cluster":{"server":"https://a:6443",` + extensions + `}}`
	good := clusterv1.ClientConfig{URL: "https://a:6443"}
	other := `{"name":"somebody","cluster":{"server":"https://b","more":[1]},"and":"more"}`
	for name, tc := range map[string]struct {
		configs      []clusterv1.ClientConfig
		before, want []string
	}{
		"none":                        {nil, nil, nil},
		"one":                         {[]clusterv1.ClientConfig{good}, nil, []string{plain}},
		"not by TLS":                  {[]clusterv1.ClientConfig{{URL: "http://a:6443"}}, nil, nil},
		"no host":                     {[]clusterv1.ClientConfig{{URL: "https://"}}, nil, nil},
		"a password in it":            {[]clusterv1.ClientConfig{{URL: "https://a:b@c"}}, nil, nil},
		"a query in it":               {[]clusterv1.ClientConfig{{URL: "https://a?b=c"}}, nil, nil},
		"no address":                  {[]clusterv1.ClientConfig{{URL: "https://a b\n"}}, nil, nil},
		"an authority that is none":   {[]clusterv1.ClientConfig{{URL: "https://a", CABundle: []byte("none")}}, nil, nil},
		"a huge authority":            {[]clusterv1.ClientConfig{{URL: "https://a", CABundle: bytes.Repeat([]byte("x"), maxCA+1)}}, nil, nil},
		"the second one is usable":    {[]clusterv1.ClientConfig{{URL: "http://a"}, good}, nil, []string{plain}},
		"others stay":                 {[]clusterv1.ClientConfig{good}, []string{other}, []string{other, plain}},
		"others stay where they are":  {[]clusterv1.ClientConfig{good}, []string{`{"name":"open-cluster-management"}`, other}, []string{plain, other}},
		"twice":                       {[]clusterv1.ClientConfig{good}, []string{plain, other, plain}, []string{plain, other}},
		"it goes with the address":    {nil, []string{plain, other}, []string{other}},
		"what is no entry is no harm": {nil, []string{`[]`}, []string{`[]`}},
	} {
		t.Run(name, func(t *testing.T) {
			mc := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{ManagedClusterClientConfigs: tc.configs}}
			mc.Name = "c1"
			p := &multiclusterv1alpha1.ClusterProfile{Status: multiclusterv1alpha1.ClusterProfileStatus{AccessProviders: entries(tc.before...)}}
			setAccess(p, mc)
			require.Equal(t, entries(tc.want...), p.Status.AccessProviders)
		})
	}
	require.Contains(t, string(access(&clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{ManagedClusterClientConfigs: []clusterv1.ClientConfig{
		{URL: "https://a", CABundle: []byte(authority)},
	}}}).Raw), `"certificate-authority-data":"`+base64.StdEncoding.EncodeToString([]byte(authority))+`"`)
}

// authority is a certificate that signed itself.
const authority = `-----BEGIN CERTIFICATE-----
MIIBfzCCASWgAwIBAgIUBCGBtyt2eQe6keWxRpQGrSgSi70wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJYXV0aG9yaXR5MCAXDTI2MTEyODA5Mjc0OFoYDzIxMjYxMTA0
MDkyNzQ4WjAUMRIwEAYDVQQDDAlhdXRob3JpdHkwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASpguHWgrrq/cxVCpw1NmSkUU/T3VEIiGiPfxkYs+Nx2/yAe/dnmQTf
D2Ebbd2yYpQvouy/pxrC0amClGR2sfdeo1MwUTAdBgNVHQ4EFgQUNe7h7L0by47c
En3XOQciozXIjKEwHwYDVR0jBBgwFoAUNe7h7L0by47cEn3XOQciozXIjKEwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiEAzYZoJhj+FZdXBFUNfQYX
JSurhrz9QGbMBrsmZigkRaICIGE4ZfpL81PMrosQkZz8H42Gt+cvDj/xVFti1B/w
xjeZ
-----END CERTIFICATE-----`
