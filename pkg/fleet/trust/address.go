// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"fmt"
	"net"
	"net/url"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// IsLoopback reports whether a server URL is only valid on this machine.
func IsLoopback(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// CheckURL returns why text cannot be the URL of an API server.
func CheckURL(what, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" {
		return fleet.Misuse(fmt.Sprintf("%q cannot be %s", text, what), "it is not an https URL", fleet.Advice("for example https://hub.example.org:6443"))
	}
	return nil
}
