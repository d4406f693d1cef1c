// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hubEndpoint tells how agents reach a hub that we are logged in to, and the
// hash that pins its CA ("" when its certificate is a public one). The address
// is that of the context; when it only means this machine, the address that
// the hub publishes is taken if it means more.
func hubEndpoint(ctx context.Context, hub *Cluster) (Endpoint, string, error) {
	e := Endpoint{Server: hub.Server()}
	if isLoopback(e.Server) {
		if info, err := publishedInfo(ctx, hub); err == nil && !isLoopback(info.server) {
			return hashed(ctx, Endpoint{Server: info.server, CA: info.ca})
		}
	}
	ca, err := caOf(hub.Config)
	if errors.Is(err, errInsecure) {
		ca, err = publishedCA(ctx, hub)
	}
	if err != nil {
		return Endpoint{}, "", failed("finding the CA of "+hub.String(), err, "give the context of the hub a certificate-authority")
	}
	e.CA = ca
	return hashed(ctx, e)
}

// hashed adds the hash of the CA that the server's certificate comes from. A
// server that does not answer here may still answer the agents: then it is the
// first CA of the bundle.
func hashed(ctx context.Context, e Endpoint) (Endpoint, string, error) {
	if len(e.CA) == 0 {
		return e, "", nil
	}
	cert, err := root(ctx, e.Server, e.CA, "")
	if err == nil {
		return e, CAHash(cert), nil
	}
	certs, err := certificates(e.CA)
	if err != nil {
		return e, "", failed("reading the CA of "+e.Server, err, "")
	}
	return e, CAHash(certs[0]), nil
}

// publishedInfo reads cluster-info with our login.
func publishedInfo(ctx context.Context, c *Cluster) (*publicInfo, error) {
	u, err := c.Client.Resource(configMaps).Namespace(clusterInfoNamespace).Get(ctx, clusterInfoName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading %s/%s: %w", clusterInfoNamespace, clusterInfoName, err)
	}
	return parseInfo(u, "")
}

// publishedCA reads the CA that the cluster gives to its pods, for a context
// that verifies nothing, and keeps it only if it is right.
func publishedCA(ctx context.Context, c *Cluster) ([]byte, error) {
	u, err := c.Client.Resource(configMaps).Namespace(metav1.NamespaceSystem).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
	if err != nil {
		return nil, errors.Join(errInsecure, err)
	}
	text, _, _ := unstructured.NestedString(u.Object, "data", "ca.crt")
	if _, err := root(ctx, c.Server(), []byte(text), ""); err != nil {
		return nil, errors.Join(errInsecure, err)
	}
	return []byte(text), nil
}

// discovered is what was found out about a hub whose address and token are all
// that was given.
type discovered struct {
	Endpoint
	hash    string
	warning string
}

// trust decides by which CA a hub is trusted, before any token is sent to it:
// the given one; else the system's; else the one that the hub publishes, proven
// by the hash, by a bootstrap token, or by nothing but being first, which is
// told.
func trust(ctx context.Context, e Endpoint, token, hash string) (*discovered, error) {
	d := &discovered{Endpoint: e}
	if len(e.CA) > 0 {
		return d, d.verify(ctx, hash)
	}
	cert, err := root(ctx, e.Server, nil, e.ProxyURL)
	if err == nil {
		if hash != "" && CAHash(cert) != hash {
			return nil, hashMismatch(e.Server, fmt.Errorf("the hub has %s, wanted is %s", CAHash(cert), hash))
		}
		if hash != "" {
			// A public CA that is named is the only one that is trusted from now on;
			// without it in the kubeconfig any other public one would do.
			d.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
			return d, d.verify(ctx, hash)
		}
		d.hash = CAHash(cert)
		return d, nil
	}
	if !strings.Contains(err.Error(), "x509:") && !strings.Contains(err.Error(), "tls:") {
		return nil, failed(fmt.Sprintf("the hub at %s cannot be reached", e.Server), err, "check --hub-apiserver, network and proxy")
	}
	return d, d.fetch(ctx, token, hash)
}

// fetch takes the CA that the hub publishes.
func (d *discovered) fetch(ctx context.Context, token, hash string) error {
	info, err := anonymousInfo(ctx, d.Server, d.ProxyURL, token)
	if err != nil {
		return refused("the CA of the hub at "+d.Server+" is not known, so the token was not sent", oneLine(err.Error()),
			"name the hub's CA by --ca-file FILE; on the hub: kubectl config view --raw --minify -o jsonpath='{.clusters[0].cluster.certificate-authority-data}' | base64 -d")
	}
	d.CA = info.ca
	if hash == "" && !info.signed {
		d.warning = "the CA was taken from the hub itself and nothing proves it; compare it, or use --hub-ca-hash"
	}
	return d.verify(ctx, hash)
}

// verify pins the CA by the hash and checks that the server's certificate comes
// from it.
func (d *discovered) verify(ctx context.Context, hash string) error {
	if hash != "" {
		pinned, err := pin(d.CA, hash)
		if err != nil {
			return hashMismatch(d.Server, err)
		}
		d.CA = pinned
	}
	cert, err := root(ctx, d.Server, d.CA, d.ProxyURL)
	if err != nil {
		if strings.Contains(err.Error(), "x509:") || strings.Contains(err.Error(), "tls:") {
			return refused("the certificate of the hub at "+d.Server+" is not of the CA", oneLine(err.Error()), "check --ca-file and --hub-apiserver; nothing was sent to the hub")
		}
		return failed(fmt.Sprintf("the hub at %s cannot be reached", d.Server), err, "check --hub-apiserver, network and proxy")
	}
	d.hash = CAHash(cert)
	return nil
}

func hashMismatch(server string, err error) error {
	return refused("the CA of the hub at "+server+" is not the expected one, so the token was not sent", oneLine(err.Error()),
		"make sure that you reach the right hub, and take the hash from: kubectl ocm hub token -o jsonpath={.ca-hash}")
}
