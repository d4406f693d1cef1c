// SPDX-License-Identifier: Apache-2.0

package options

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestFlagsGoIntoTheKubeconfigOfOneContext(t *testing.T) {
	user := &clientcmdapi.AuthInfo{Token: "t", ClientCertificateData: []byte("c"), ClientKeyData: []byte("k")}
	applyUser(user, &clientcmdapi.AuthInfo{})
	require.Equal(t, &clientcmdapi.AuthInfo{Token: "t", ClientCertificateData: []byte("c"), ClientKeyData: []byte("k")}, user)
	applyUser(user, &clientcmdapi.AuthInfo{Impersonate: "ann", ImpersonateGroups: []string{"g"}, ClientCertificate: "/c", ClientKey: "/k"})
	require.Equal(t, &clientcmdapi.AuthInfo{Token: "t", Impersonate: "ann", ImpersonateGroups: []string{"g"}, ClientCertificate: "/c", ClientKey: "/k"}, user)

	cluster := &clientcmdapi.Cluster{CertificateAuthorityData: []byte("a")}
	applyCluster(cluster, &clientcmdapi.Cluster{CertificateAuthority: "/a"})
	require.Equal(t, &clientcmdapi.Cluster{CertificateAuthority: "/a"}, cluster)
	applyCluster(cluster, &clientcmdapi.Cluster{InsecureSkipTLSVerify: true})
	require.Equal(t, &clientcmdapi.Cluster{InsecureSkipTLSVerify: true}, cluster, "a CA beside it is refused by clients")
}

func TestTheKubeconfigOfAPodNamesItsFiles(t *testing.T) {
	got := inPodConfig(&rest.Config{
		Host: "https://hub", BearerToken: "secret", BearerTokenFile: "/var/token", TLSClientConfig: rest.TLSClientConfig{CAFile: "/var/ca"},
		Impersonate: rest.ImpersonationConfig{UserName: "ann"},
	})
	require.Equal(t, &clientcmdapi.Cluster{Server: "https://hub", CertificateAuthority: "/var/ca"}, got.Clusters["in-pod"])
	require.Equal(t, &clientcmdapi.AuthInfo{TokenFile: "/var/token", Impersonate: "ann"}, got.AuthInfos["in-pod"], "the token stays where it is renewed")
	require.Equal(t, "in-pod", got.Contexts[got.CurrentContext].AuthInfo)
}
