// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// TLS limits the connections that a server accepts; the zero value leaves the choice to Go, from
// TLS 1.2 on.
type TLS struct {
	minVersion uint16
	suites     []uint16
}

// versions are the names of TLS versions. Those before 1.2 mean 1.2: no server here accepts less.
var versions = map[string]uint16{
	"": 0, "VersionTLS10": tls.VersionTLS12, "VersionTLS11": tls.VersionTLS12, "VersionTLS12": tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13,
}

// ParseTLS reads the name of the lowest version and the names of the cipher suites, which TLS 1.3
// does not consult; empty ones leave the choice to Go. Suites with known weaknesses are refused.
func ParseTLS(minVersion string, suites []string) (TLS, error) {
	lowest, ok := versions[minVersion]
	if !ok {
		return TLS{}, fmt.Errorf("TLS version %q: must be one of %s", minVersion, strings.Join(slices.Sorted(maps.Keys(versions))[1:], ", "))
	}
	out := TLS{minVersion: lowest}
	for _, name := range suites {
		known := tls.CipherSuites()
		i := slices.IndexFunc(known, func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return TLS{}, fmt.Errorf("cipher suite %q does not exist or has known weaknesses", name)
		}
		out.suites = append(out.suites, known[i].ID)
	}
	return out, nil
}

// limit applies the limits to the configuration of a server.
func (t TLS) limit(c *tls.Config) *tls.Config {
	c.MinVersion, c.CipherSuites = max(tls.VersionTLS12, t.minVersion), t.suites
	return c
}
