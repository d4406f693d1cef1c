// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"

	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// One returns the part of the user's kubeconfig that belongs to the selected context, with the connection flags applied.
// In a pod without a kubeconfig it names the files of the pod's service account. It makes no request.
func (f *Factory) One() (*clientcmdapi.Config, error) {
	loader := f.flags.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fleet.Fail("the kubeconfig cannot be read", err, nil)
	}
	c, err := f.Cluster("") // reports what is missing
	if err != nil {
		return nil, err
	}
	if c.Context == "" {
		return inPodConfig(c.Config), nil
	}
	out := raw.DeepCopy()
	out.CurrentContext = c.Context
	if err := clientcmdapi.MinifyConfig(out); err != nil {
		return nil, fleet.Fail("reading context "+c.Context, err, nil)
	}
	at := out.Contexts[c.Context]
	flags := f.overrides()
	if at.AuthInfo == "" {
		at.AuthInfo = at.Cluster
	}
	if out.AuthInfos[at.AuthInfo] == nil {
		out.AuthInfos[at.AuthInfo] = clientcmdapi.NewAuthInfo()
	}
	applyUser(out.AuthInfos[at.AuthInfo], &flags.AuthInfo)
	applyCluster(out.Clusters[at.Cluster], &flags.ClusterInfo)
	return out, nil
}

// ActsAsOther reports whether flags of this run replace or add to the user of the kubeconfig.
func (f *Factory) ActsAsOther() bool {
	a := f.overrides().AuthInfo
	return a.Impersonate != "" || a.ImpersonateUID != "" || len(a.ImpersonateGroups) > 0 || a.ClientCertificate != "" || a.ClientKey != ""
}

// applyUser applies the flags about the user.
func applyUser(user, flags *clientcmdapi.AuthInfo) {
	user.Impersonate = cmp.Or(flags.Impersonate, user.Impersonate)
	user.ImpersonateUID = cmp.Or(flags.ImpersonateUID, user.ImpersonateUID)
	if len(flags.ImpersonateGroups) > 0 {
		user.ImpersonateGroups = flags.ImpersonateGroups
	}
	if flags.ClientCertificate != "" {
		user.ClientCertificate, user.ClientCertificateData = flags.ClientCertificate, nil
	}
	if flags.ClientKey != "" {
		user.ClientKey, user.ClientKeyData = flags.ClientKey, nil
	}
}

// applyCluster applies the flags about the server.
func applyCluster(cluster, flags *clientcmdapi.Cluster) {
	switch {
	case flags.InsecureSkipTLSVerify:
		cluster.InsecureSkipTLSVerify, cluster.CertificateAuthority, cluster.CertificateAuthorityData = true, "", nil
	case flags.CertificateAuthority != "":
		cluster.CertificateAuthority, cluster.CertificateAuthorityData = flags.CertificateAuthority, nil
	}
}

// inPodConfig returns the kubeconfig of a pod's service account. The token stays in its file, where it is renewed.
func inPodConfig(c *rest.Config) *clientcmdapi.Config {
	const name = "in-pod"
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthority: c.CAFile, CertificateAuthorityData: c.CAData}
	out.AuthInfos[name] = &clientcmdapi.AuthInfo{TokenFile: c.BearerTokenFile, Impersonate: c.Impersonate.UserName, ImpersonateUID: c.Impersonate.UID,
		ImpersonateGroups: c.Impersonate.Groups}
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	out.CurrentContext = name
	return out
}
