// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
)

// The oldest Kubernetes that is supported on each side.
const (
	oldestHub     = "1.28.0"
	oldestManaged = "1.22.0"
)

// serverVersion asks the API server for its version. It is the first request to
// a cluster, so that an address that does not answer is told here.
func serverVersion(ctx context.Context, c *Cluster) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	raw, err := c.get(ctx, "/version")
	if err != nil {
		return "", unreachable(c, err)
	}
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(raw, &info); err != nil || info.GitVersion == "" {
		return "", failed(fmt.Sprintf("%s is no Kubernetes API server", c), errors.New("it does not tell a version"), "check the server of "+c.where())
	}
	return info.GitVersion, nil
}

// unreachable explains why the first request to a cluster failed.
func unreachable(c *Cluster, err error) error {
	switch {
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return explain("reading the version of "+c.String(), c, err)
	case errors.Is(err, context.Canceled):
		return err
	case strings.Contains(err.Error(), "x509:"), strings.Contains(err.Error(), "tls:"):
		return failed(fmt.Sprintf("the certificate of %s is not trusted", c), err, "check the CA of "+c.where()+", or name it by --certificate-authority")
	}
	return failed(fmt.Sprintf("%s cannot be reached", c), err, "check address, network and proxy of "+c.where())
}

// atLeast refuses a server that is older than oldest.
func atLeast(c *Cluster, have, oldest, side string) error {
	v, err := version.ParseGeneric(have)
	if err != nil {
		return failed("reading the version of "+c.String(), err, "")
	}
	if v.LessThan(version.MustParseGeneric(oldest)) {
		return refused(fmt.Sprintf("Kubernetes %s is too old for a %s", have, side), "it needs "+strings.TrimSuffix(oldest, ".0")+" or newer", "upgrade the cluster of "+c.where())
	}
	return nil
}

// IsHub tells whether a cluster serves the hub's API. It makes one request.
func IsHub(ctx context.Context, c *Cluster) bool {
	ok, err := isHub(ctx, c)
	return ok && err == nil
}

// isHub tells whether the cluster serves the hub's API.
func isHub(ctx context.Context, c *Cluster) (bool, error) {
	raw, err := c.get(ctx, clusterGroupPath)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return strings.Contains(string(raw), `"managedclusters"`), nil
}

// needHub refuses a cluster that is no hub.
func needHub(ctx context.Context, c *Cluster) error {
	ok, err := isHub(ctx, c)
	if err != nil {
		return explain("looking for the hub on "+c.String(), c, err)
	}
	if !ok {
		return notHub(c, "it does not serve "+managedClusters.GroupResource().String())
	}
	return nil
}

// isLoopback tells whether a server URL means this machine only.
func isLoopback(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// checkURL tells why text cannot be the URL of an API server.
func checkURL(what, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" {
		return usage(fmt.Sprintf("%q cannot be %s", text, what), "it is no https URL", "for example https://hub.example.org:6443")
	}
	return nil
}
