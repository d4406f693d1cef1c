// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

// Layer is the part of a connection at which it failed.
type Layer int

// The layers, in the order in which a connection passes them.
const (
	// LayerName means that the name of the server, or of the proxy to it, has no address here.
	LayerName Layer = iota
	// LayerConnection means that nothing accepts connections at the address, or not in time.
	LayerConnection
	// LayerTLS means that what answers there cannot show that it is the server.
	LayerTLS
	// LayerAnswer means that the server was reached and verified, and did not answer as it should.
	LayerAnswer
)

// LayerOf returns where the connection failed for which a client of net/http returned err.
func LayerOf(err error) Layer {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return LayerName
	}
	var (
		certificate *tls.CertificateVerificationError
		alert       tls.AlertError
		record      tls.RecordHeaderError
		timeout     net.Error
		operation   *net.OpError
	)
	switch {
	case errors.As(err, &certificate), errors.As(err, &alert), errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return LayerTLS
	case errors.As(err, &operation) && (operation.Op == "dial" || operation.Op == "proxyconnect"), errors.As(err, &timeout) && timeout.Timeout():
		return LayerConnection
	}
	return LayerAnswer
}
