// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"context"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Discovered is what was found out about a hub whose address and token are all
// that was given.
type Discovered struct {
	Endpoint
	// Hash is that of the CA that the server's certificate comes from.
	Hash string
	// Warning tells what was not proven; empty when all was.
	Warning fleet.Note
}

// Discover decides by which CA a hub is trusted, before any token is sent to it:
// the given one; else the system's; else the one that the hub publishes, proven
// by the hash, by a bootstrap token, or by nothing but being first, which is
// told.
func Discover(ctx context.Context, e Endpoint, token, hash string) (*Discovered, error) {
	d := &Discovered{Endpoint: e}
	if len(e.CA) > 0 {
		return d, d.verify(ctx, hash)
	}
	cert, err := root(ctx, e.Server, nil, e.ProxyURL)
	if err == nil {
		if hash != "" && Hash(cert) != hash {
			return nil, HashMismatch(e.Server, fmt.Errorf("the hub has %s, wanted is %s", Hash(cert), hash))
		}
		if hash != "" {
			// A public CA that is named is the only one that is trusted from now on;
			// without it in the kubeconfig any other public one would do.
			d.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
			return d, d.verify(ctx, hash)
		}
		d.Hash = Hash(cert)
		return d, nil
	}
	if !strings.Contains(err.Error(), "x509:") && !strings.Contains(err.Error(), "tls:") {
		return nil, fleet.Fail(fmt.Sprintf("the hub at %s cannot be reached", e.Server), err, CheckAddress.With())
	}
	return d, d.fetch(ctx, token, hash)
}

// fetch takes the CA that the hub publishes.
func (d *Discovered) fetch(ctx context.Context, token, hash string) error {
	info, err := anonymousInfo(ctx, d.Server, d.ProxyURL, token)
	if err != nil {
		return fleet.Refuse("the CA of the hub at "+d.Server+" is not known, so the token was not sent", fleet.OneLine(err.Error()), NameHubCA.With())
	}
	d.CA = info.CA
	if hash == "" && !info.signed {
		d.Warning = fleet.Note{Text: "the CA was taken from the hub itself and nothing proves it", Fix: CompareCA.With()}
	}
	return d.verify(ctx, hash)
}

// verify pins the CA by the hash and checks that the server's certificate comes
// from it.
func (d *Discovered) verify(ctx context.Context, hash string) error {
	if hash != "" {
		pinned, err := pin(d.CA, hash)
		if err != nil {
			return HashMismatch(d.Server, err)
		}
		d.CA = pinned
	}
	cert, err := root(ctx, d.Server, d.CA, d.ProxyURL)
	if err != nil {
		if strings.Contains(err.Error(), "x509:") || strings.Contains(err.Error(), "tls:") {
			return fleet.Refuse("the certificate of the hub at "+d.Server+" is not of the CA", fleet.OneLine(err.Error()), CheckCA.With())
		}
		return fleet.Fail(fmt.Sprintf("the hub at %s cannot be reached", d.Server), err, CheckAddress.With())
	}
	d.Hash = Hash(cert)
	return nil
}

// HashMismatch refuses a hub whose CA is not the one that was named.
func HashMismatch(server string, err error) error {
	return fleet.Refuse("the CA of the hub at "+server+" is not the expected one, so the token was not sent", fleet.OneLine(err.Error()), RightHub.With())
}
