// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// ClusterInfoName is the ConfigMap in kube-public that publishes the cluster's address and CA.
const (
	ClusterInfoName      = "cluster-info"
	ClusterInfoNamespace = "kube-public"
)

// Info is the content of cluster-info.
type Info struct {
	// Server is the address of the hub, CA the bundle that verifies its certificate.
	Server string
	CA     []byte
	// signed is true when the CA was verified with the token.
	signed bool
}

// anonymousInfo reads cluster-info without credentials and without verifying the server, as
// kubeadm does. A bootstrap token verifies what was read: only the cluster could have signed
// it.
func anonymousInfo(ctx context.Context, server, proxyURL, token string) (*Info, error) {
	config := &rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	config.Wrap(kubeconfig.Direct) // what another server publishes is not of this hub
	if err := setProxy(config, proxyURL); err != nil {
		return nil, err
	}
	c, err := fleet.Connect(config, "")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fleet.ReachTimeout)
	defer cancel()
	u, err := c.Client.Resource(fleet.ConfigMaps).Namespace(ClusterInfoNamespace).Get(ctx, ClusterInfoName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading %s/%s anonymously: %w", ClusterInfoNamespace, ClusterInfoName, err)
	}
	return ParseInfo(u, token)
}

// ParseInfo parses the ConfigMap cluster-info and, for a bootstrap token, checks its
// signature.
func ParseInfo(u *unstructured.Unstructured, token string) (*Info, error) {
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	text := data["kubeconfig"]
	kc, err := clientcmd.Load([]byte(text))
	if err != nil || text == "" {
		return nil, errors.New("cluster-info holds no kubeconfig")
	}
	out := &Info{}
	for _, cluster := range kc.Clusters {
		out.Server, out.CA = cluster.Server, cluster.CertificateAuthorityData
	}
	if len(out.CA) == 0 {
		return nil, errors.New("cluster-info holds no CA")
	}
	id, secret, ok := bootstrapToken(token)
	if signature := data["jws-kubeconfig-"+id]; ok && signature != "" {
		if err := verifyJWS(signature, id, secret, text); err != nil {
			return nil, err
		}
		out.signed = true
	}
	return out, nil
}

// verifyJWS verifies a detached HS256 signature over the kubeconfig, which
// kube-controller-manager made with the token.
func verifyJWS(signature, id, secret, content string) error {
	parts := strings.Split(signature, ".")
	if len(parts) != 3 || parts[1] != "" {
		return errors.New("the signature of cluster-info has the wrong form")
	}
	var header struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil || json.Unmarshal(raw, &header) != nil || header.Algorithm != "HS256" || header.KeyID != id {
		return errors.New("the signature of cluster-info is not from this token")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(content))))
	got, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !hmac.Equal(got, mac.Sum(nil)) {
		return errors.New("the signature of cluster-info is wrong: the server is not the hub that made this token")
	}
	return nil
}

// Published reads cluster-info with the caller's login.
func Published(ctx context.Context, c *fleet.Cluster) (*Info, error) {
	u, err := c.Client.Resource(fleet.ConfigMaps).Namespace(ClusterInfoNamespace).Get(ctx, ClusterInfoName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading %s/%s: %w", ClusterInfoNamespace, ClusterInfoName, err)
	}
	return ParseInfo(u, "")
}

// PublishedCA reads the CA that the cluster gives to its pods, for a context that verifies
// nothing, and returns it only if it verifies the server.
func PublishedCA(ctx context.Context, c *fleet.Cluster) ([]byte, error) {
	u, err := c.Client.Resource(fleet.ConfigMaps).Namespace(metav1.NamespaceSystem).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	if err != nil {
		return nil, errors.Join(errInsecure, err)
	}
	text, _, _ := unstructured.NestedString(u.Object, "data", "ca.crt")
	if _, err := Root(ctx, Endpoint{Server: c.Server(), CA: []byte(text)}, ""); err != nil {
		return nil, errors.Join(errInsecure, err)
	}
	return []byte(text), nil
}

// tokenPattern matches a bootstrap token.
var tokenPattern = regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})$`)

// bootstrapToken splits a bootstrap token into id and secret.
func bootstrapToken(token string) (id, secret string, ok bool) {
	m := tokenPattern.FindStringSubmatch(token)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}
