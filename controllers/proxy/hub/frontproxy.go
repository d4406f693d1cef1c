// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/caller"
)

// Keys of the ConfigMap in which an API server says how it presents itself to aggregated APIs.
const (
	keyClientCA     = "client-ca-file"
	keyAuthority    = "requestheader-client-ca-file"
	keyNames        = "requestheader-allowed-names"
	keyUserHeaders  = "requestheader-username-headers"
	keyUIDHeaders   = "requestheader-uid-headers"
	keyGroupHeaders = "requestheader-group-headers"
	keyExtra        = "requestheader-extra-headers-prefix"
)

// frontProxy is how the hub's API server proves who it is, and how it says for whom it asks.
type frontProxy struct {
	pool *x509.CertPool
	// names are the common names of its certificate; none allows all of the authority.
	names                           []string
	users, uids, groups, extraBegin []string
}

var (
	errNoFrontProxy = errors.New(
		"the hub's API server has no authority for aggregated APIs: start it with --requestheader-client-ca-file and --proxy-client-cert-file")
	errNotFrontProxy = errors.New("only the API server of the hub is answered here")
)

// readFrontProxy reads the data of the ConfigMap.
func readFrontProxy(data map[string]string) (*frontProxy, error) {
	bundle := data[keyAuthority]
	if bundle == "" {
		return nil, errNoFrontProxy
	}
	f := &frontProxy{pool: x509.NewCertPool()}
	if !f.pool.AppendCertsFromPEM([]byte(bundle)) {
		return nil, fmt.Errorf("key %s holds no certificate", keyAuthority)
	}
	for key, into := range map[string]*[]string{
		keyNames: &f.names, keyUserHeaders: &f.users, keyUIDHeaders: &f.uids, keyGroupHeaders: &f.groups, keyExtra: &f.extraBegin,
	} {
		if data[key] == "" {
			continue
		}
		if err := json.Unmarshal([]byte(data[key]), into); err != nil {
			return nil, fmt.Errorf("key %s is not a list of strings: %w", key, err)
		}
	}
	if len(f.users) == 0 {
		return nil, fmt.Errorf("key %s names no header", keyUserHeaders)
	}
	if clients := x509.NewCertPool(); len(f.names) == 0 && clients.AppendCertsFromPEM([]byte(data[keyClientCA])) && clients.Equal(f.pool) {
		return nil, fmt.Errorf("key %s allows every name, and the same authority signs certificates of users: any of them could pose as the API server",
			keyNames)
	}
	return f, nil
}

// verify returns nil for the certificate of the API server.
func (f *frontProxy) verify(chain []*x509.Certificate, now time.Time) error {
	if len(chain) == 0 {
		return errNotFrontProxy
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: f.pool, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil || len(f.names) > 0 && !slices.Contains(f.names, chain[0].Subject.CommonName) {
		return errNotFrontProxy
	}
	return nil
}

// caller returns for whom the API server asks. Only the headers that it names count.
func (f *frontProxy) caller(h http.Header) caller.Caller {
	c := caller.Caller{User: first(h, f.users), UID: first(h, f.uids), Extra: map[string][]string{}}
	for _, name := range f.groups {
		c.Groups = append(c.Groups, h.Values(name)...)
	}
	for _, begin := range f.extraBegin {
		for name, values := range h {
			if len(name) <= len(begin) || !strings.EqualFold(name[:len(begin)], begin) {
				continue
			}
			key := strings.ToLower(name[len(begin):])
			if decoded, err := url.PathUnescape(key); err == nil {
				key = decoded
			}
			c.Extra[key] = append(c.Extra[key], values...)
		}
	}
	return c
}

// first returns the value of the first of the headers that is set.
func first(h http.Header, names []string) string {
	for _, name := range names {
		if v := h.Get(name); v != "" {
			return v
		}
	}
	return ""
}
