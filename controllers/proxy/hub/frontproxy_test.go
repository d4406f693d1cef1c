// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/caller"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
)

func TestOnlyTheNamedClientOfTheAuthorityIsTheAPIServer(t *testing.T) {
	now := time.Now()
	theirs, err := pki.Open(t.TempDir(), "front-proxy", now)
	require.NoError(t, err)
	users, err := pki.Open(t.TempDir(), "users", now)
	require.NoError(t, err)
	f, err := readFrontProxy(map[string]string{
		"client-ca-file": string(users.Certificate()), "requestheader-client-ca-file": string(theirs.Certificate()),
		"requestheader-allowed-names": `["front"]`, "requestheader-username-headers": `["X-Remote-User"]`,
	})
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		from *pki.Authority
		user string
		at   time.Time
		want error
	}{
		"it is":        {theirs, "front", now, nil},
		"another name": {theirs, "frontier", now, errNotFrontProxy},
		"upper case":   {theirs, "Front", now, errNotFrontProxy},
		"of the users": {users, "front", now, errNotFrontProxy},
		"it is over":   {theirs, "front", now.AddDate(100, 0, 0), errNotFrontProxy},
		"not yet":      {theirs, "front", now.AddDate(-1, 0, 0), errNotFrontProxy},
		"nobody":       {nil, "", now, errNotFrontProxy},
	} {
		t.Run(name, func(t *testing.T) {
			var chain []*x509.Certificate
			if tc.from != nil {
				pair, err := tc.from.Client(tc.user, tc.user)
				require.NoError(t, err)
				text, err := os.ReadFile(pair.CertFile)
				require.NoError(t, err)
				block, _ := pem.Decode(text)
				c, err := x509.ParseCertificate(block.Bytes)
				require.NoError(t, err)
				chain = append(chain, c)
			}
			require.Equal(t, tc.want, f.verify(chain, tc.at))
		})
	}
}

func TestAnAuthorityThatWouldLetUsersInIsRefused(t *testing.T) {
	shared, err := pki.Open(t.TempDir(), "shared", time.Now())
	require.NoError(t, err)
	bundle := string(shared.Certificate())
	for name, data := range map[string]map[string]string{
		"none":              {},
		"no certificate":    {"requestheader-client-ca-file": "none"},
		"no header":         {"requestheader-client-ca-file": bundle},
		"no list":           {"requestheader-client-ca-file": bundle, "requestheader-username-headers": "X-Remote-User"},
		"that of the users": {"requestheader-client-ca-file": bundle, "client-ca-file": bundle, "requestheader-username-headers": `["X-Remote-User"]`},
	} {
		_, err := readFrontProxy(data)
		require.Error(t, err, name)
	}
}

func TestOnlyHeadersOfTheAPIServerName(t *testing.T) {
	f := &frontProxy{users: []string{"X-Remote-User"}, groups: []string{"X-Remote-Group"}, uids: []string{"X-Remote-Uid"}, extraBegin: []string{"X-Remote-Extra-"}}
	h := http.Header{}
	for _, line := range [][2]string{
		{"X-Remote-User", "ada"}, {"X-Remote-User", "eve"}, {"x-remote-group", "a"}, {"X-REMOTE-GROUP", "b"}, {"X-Remote-Uid", "7"},
		{"X-Remote-Extra-Example.org%2fteam", "t"}, {"X-Remote-Extra-", "none"}, {"Impersonate-User", "eve"}, {"Ocm-Caller", "eve"},
	} {
		h.Add(line[0], line[1])
	}
	require.Equal(t, caller.Caller{
		User: "ada", UID: "7", Groups: []string{"a", "b"}, Extra: map[string][]string{"example.org/team": {"t"}},
	}, f.caller(h))
}
