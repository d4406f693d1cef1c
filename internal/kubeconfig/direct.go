// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"errors"
	"net/http"
)

// errRedirected is the answer of a server that is no API server, or no honest one.
var errRedirected = errors.New("the server redirects to another address, which is not followed")

// Direct returns a transport that follows no redirect. A kubeconfig says how its own server is
// verified, and clients would send the token to any address that the server names.
func Direct(next http.RoundTripper) http.RoundTripper { return direct{next} }

type direct struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := d.RoundTripper.RoundTrip(r)
	if err == nil && answer.StatusCode/100 == 3 && answer.Header.Get("Location") != "" {
		_ = answer.Body.Close()
		return nil, errRedirected
	}
	return answer, err
}
