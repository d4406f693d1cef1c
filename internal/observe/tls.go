// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
)

// TLS limits the connections that a server accepts; the zero value leaves the choice to Go, from
// TLS 1.2 on.
type TLS struct {
	minVersion uint16
	suites     []uint16
	// current, if set, returns the limits of a new connection.
	current func() TLS
}

// Changing returns limits that may change: current is called for every new connection.
func Changing(current func() TLS) TLS { return TLS{current: current} }

// versions are the names of TLS versions. Those before 1.2 mean 1.2: no server here accepts less.
var versions = map[string]uint16{
	"": 0, "VersionTLS10": tls.VersionTLS12, "VersionTLS11": tls.VersionTLS12, defaultVersion: tls.VersionTLS12, "VersionTLS13": tls.VersionTLS13,
}

const defaultVersion = "VersionTLS12"

// ParseTLS reads the name of the lowest version and the names of the cipher suites, which TLS 1.3
// does not consult; empty ones leave the choice to Go. Suites with known weaknesses are refused.
func ParseTLS(minVersion string, suites []string) (TLS, error) {
	lowest, ok := versions[minVersion]
	if !ok {
		return TLS{}, fmt.Errorf("TLS version %q: must be one of %s",
			excerpt.Of(minVersion, maxName), strings.Join(slices.Sorted(maps.Keys(versions))[1:], ", "))
	}
	out := TLS{minVersion: lowest}
	for _, name := range suites {
		known := tls.CipherSuites()
		i := slices.IndexFunc(known, func(s *tls.CipherSuite) bool { return s.Name == name })
		if i < 0 {
			return TLS{}, fmt.Errorf("cipher suite %q does not exist or has known weaknesses", excerpt.Of(name, maxName))
		}
		out.suites = append(out.suites, known[i].ID)
	}
	return out, nil
}

// maxName is how much of an unknown name a message repeats, in bytes.
const maxName = 80

// Profile names limits, as flags do.
type Profile struct {
	// MinVersion is the lowest version; empty means TLS 1.2.
	MinVersion string
	// Suites are the cipher suites; none leave the choice to Go.
	Suites []string
}

// ConfigMapProfile is the ConfigMap in the namespace of an operator that limits the connections
// of everything that it runs.
const ConfigMapProfile = "ocm-tls-profile"

// ReadProfile reads the data of ConfigMapProfile, which has two names for each version.
func ReadProfile(data map[string]string) (Profile, TLS, error) {
	p := Profile{MinVersion: strings.TrimSpace(data["minTLSVersion"])}
	if minor, ok := strings.CutPrefix(p.MinVersion, "TLSv1."); ok {
		p.MinVersion = "VersionTLS1" + minor
	}
	for suite := range strings.SplitSeq(data["cipherSuites"], ",") {
		if suite = strings.TrimSpace(suite); suite != "" {
			p.Suites = append(p.Suites, suite)
		}
	}
	limits, err := ParseTLS(p.MinVersion, p.Suites)
	return p, limits, err
}

// Args returns the profile as flags; that of the version is always there.
func (p Profile) Args() []string {
	out := []string{"--tls-min-version=" + cmp.Or(p.MinVersion, defaultVersion)}
	if len(p.Suites) > 0 {
		out = append(out, "--tls-cipher-suites="+strings.Join(p.Suites, ","))
	}
	return out
}

// Limit applies the limits as they are now to the configuration of a server, and returns it.
func (t TLS) Limit(c *tls.Config) *tls.Config {
	if t.current != nil {
		t = t.current()
	}
	c.MinVersion, c.CipherSuites = max(tls.VersionTLS12, t.minVersion), t.suites
	return c
}
