// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
)

// The oldest supported version of Kubernetes on each side.
const (
	OldestHub     = "1.28.0"
	OldestManaged = "1.22.0"
)

// ServerVersion returns the version of the API server. It is the first request to a cluster,
// so an address that does not answer is reported here.
func ServerVersion(ctx context.Context, c *Cluster) (string, error) {
	first, cancel := context.WithTimeout(ctx, ReachTimeout)
	defer cancel()
	raw, err := c.Get(first, "/version")
	if err != nil && (ctx.Err() != nil || strings.Contains(err.Error(), tooLate)) {
		// The time of the whole operation is over, or somebody interrupted it.
		return "", Explain("waiting for "+c.String()+" to answer", c, cmp.Or(ctx.Err(), err))
	}
	if err != nil {
		return "", unreachable(c, err)
	}
	var info struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(raw, &info); err != nil || info.GitVersion == "" {
		return "", Fail(fmt.Sprintf("%s is not a Kubernetes API server", c), errors.New("it returns no version"), Advice("check the server of "+c.Where()))
	}
	return info.GitVersion, nil
}

// unreachable explains why the first request to a cluster failed.
func unreachable(c *Cluster, err error) error {
	switch {
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		return Explain("reading the version of "+c.String(), c, err)
	case strings.Contains(err.Error(), "x509:"), strings.Contains(err.Error(), "tls:"):
		return Fail(fmt.Sprintf("the certificate of %s is not trusted", c), err, NameCA.On(c))
	}
	return Fail(fmt.Sprintf("%s cannot be reached", c), err, Advice("check address, network and proxy of "+c.Where()))
}

// AtLeast refuses a server older than oldest.
func AtLeast(c *Cluster, have, oldest, side string) error {
	v, err := version.ParseGeneric(have)
	if err != nil {
		return Fail("reading the version of "+c.String(), err, nil)
	}
	if v.LessThan(version.MustParseGeneric(oldest)) {
		return Refuse(fmt.Sprintf("Kubernetes %s is too old for a %s", have, side), "it needs "+strings.TrimSuffix(oldest, ".0")+" or newer",
			Advice("upgrade the cluster of "+c.Where()))
	}
	return nil
}

// IsHub reports whether a cluster serves the hub's API. It sends one request.
func IsHub(ctx context.Context, c *Cluster) bool {
	ok, err := ServesHub(ctx, c)
	return ok && err == nil
}

// ServesHub reports whether the cluster serves the hub's API.
func ServesHub(ctx context.Context, c *Cluster) (bool, error) {
	raw, err := c.Get(ctx, clusterGroupPath)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return strings.Contains(string(raw), `"managedclusters"`), nil
}

// NeedHub refuses a cluster that is not a hub.
func NeedHub(ctx context.Context, c *Cluster) error {
	ok, err := ServesHub(ctx, c)
	if err != nil {
		return Explain("looking for the hub on "+c.String(), c, err)
	}
	if !ok {
		return NotHub(c, "it does not serve "+ManagedClusters.GroupResource().String())
	}
	return nil
}
