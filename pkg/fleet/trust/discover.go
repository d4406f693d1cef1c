// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"context"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Discovered is what was found out about a hub from its address and a token.
type Discovered struct {
	Endpoint
	// Hash is the hash of the CA that issued the server's certificate.
	Hash string
	// Warning says what was not verified; empty when everything was.
	Warning fleet.Note
}

// Discover decides with which CA a hub is trusted, before any token is sent to it: the given
// one, else the system's, else the one that the hub publishes. The latter is verified by the
// hash or by a bootstrap token; otherwise it is trusted on first use, with a warning.
func Discover(ctx context.Context, e Endpoint, token, hash string) (*Discovered, error) {
	d := &Discovered{Endpoint: e}
	if len(e.CA) > 0 {
		return d, d.verifyCA(ctx, hash)
	}
	cert, err := Root(ctx, e, "")
	switch {
	case err != nil && isUntrusted(err):
		return d, d.fetchCA(ctx, token, hash)
	case err != nil:
		return nil, unreachable(ctx, e.Server, err)
	case hash == "":
		d.Hash = Hash(cert)
		return d, nil
	case hash != Hash(cert):
		return nil, HashMismatch(e.Server, fmt.Errorf("the hub has %s, expected %s", Hash(cert), hash))
	}
	// A pinned public CA is the only one that is trusted from now on; without it in the
	// kubeconfig any other public CA would do.
	d.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
	return d, d.verifyCA(ctx, hash)
}

// isUntrusted reports whether a server answered that is not trusted.
func isUntrusted(err error) bool {
	return strings.Contains(err.Error(), "x509:") || strings.Contains(err.Error(), "tls:")
}

func unreachable(ctx context.Context, server string, err error) error {
	if ctx.Err() != nil {
		// The time of the whole operation is over, or somebody interrupted it.
		return fleet.Explain("waiting for the hub at "+server+" to answer", nil, ctx.Err())
	}
	return fleet.Fail(fmt.Sprintf("the hub at %s cannot be reached", server), err, CheckAddress.With())
}

// fetchCA reads the CA that the hub publishes.
func (d *Discovered) fetchCA(ctx context.Context, token, hash string) error {
	info, err := anonymousInfo(ctx, d.Server, d.ProxyURL, token)
	if err != nil && ctx.Err() != nil {
		return unreachable(ctx, d.Server, err)
	}
	if err != nil {
		return fleet.Refuse("the CA of the hub at "+d.Server+" is not known, so the token was not sent", fleet.OneLine(err.Error()), NameHubCA.With())
	}
	d.CA = info.CA
	if hash == "" && !info.signed {
		d.Warning = fleet.Note{Text: "the CA was taken from the hub itself and is not verified", Fix: CompareCA.With()}
	}
	return d.verifyCA(ctx, hash)
}

// verifyCA pins the CA by the hash and checks that it issued the server's certificate.
func (d *Discovered) verifyCA(ctx context.Context, hash string) error {
	if hash != "" {
		pinned, err := selectByHash(d.CA, hash)
		if err != nil {
			return HashMismatch(d.Server, err)
		}
		d.CA = pinned
	}
	cert, err := Root(ctx, d.Endpoint, "")
	switch {
	case err != nil && isUntrusted(err):
		return fleet.Refuse("the certificate of the hub at "+d.Server+" is not of the CA", fleet.OneLine(err.Error()), CheckCA.With())
	case err != nil:
		return unreachable(ctx, d.Server, err)
	}
	d.Hash = Hash(cert)
	return nil
}

// HashMismatch refuses a hub whose CA does not have the given hash.
func HashMismatch(server string, err error) error {
	return fleet.Refuse("the CA of the hub at "+server+" is not the expected one, so the token was not sent", fleet.OneLine(err.Error()), RightHub.With())
}
