// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// kubeconfigFor returns a kubeconfig of a test server with this user.
func kubeconfigFor(server *httptest.Server, user string) []byte {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return fmt.Appendf(nil, `current-context: context
contexts: [{name: context, context: {cluster: cluster, user: user}}]
clusters: [{name: cluster, cluster: {server: '%s', certificate-authority-data: %s}}]
users: [{name: user, user: {%s}}]
`, server.URL, base64.StdEncoding.EncodeToString(ca), user)
}

func write(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path
}

func TestATokenBesideTheKubeconfigIsReadAgain(t *testing.T) {
	seen := make(chan string, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("Authorization") }))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	path := write(t, dir, "kubeconfig", kubeconfigFor(server, "tokenFile: token"))
	write(t, dir, "token", []byte("first\n"))
	c, err := connect("spoke-kubeconfig", path)
	require.NoError(t, err)
	require.NotEmpty(t, c.ca)
	ask := func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
		require.NoError(t, err)
		answer, err := c.http.Do(r)
		if err == nil {
			require.NoError(t, answer.Body.Close())
		}
		return err
	}
	require.NoError(t, ask())
	require.Equal(t, "Bearer first", <-seen)
	write(t, dir, "token", []byte("second"))
	require.NoError(t, ask())
	require.Equal(t, "Bearer second", <-seen)
	require.NoError(t, os.Remove(filepath.Join(dir, "token")))
	require.ErrorContains(t, ask(), "reading the token of the managed cluster")
}

func TestAKubeconfigThatCannotBeUsedNamesItsFlag(t *testing.T) {
	path := write(t, t.TempDir(), "kubeconfig", []byte("{}"))
	_, err := connect("spoke-kubeconfig", path)
	require.ErrorContains(t, err, "--spoke-kubeconfig="+path+": reading kubeconfig: current-context names no context")
}
