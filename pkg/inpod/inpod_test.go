// SPDX-License-Identifier: Apache-2.0

package inpod

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListenAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		portMap string
		port    int
		want    string
		wantErr string
	}{
		"a container listens everywhere":    {"", 8443, ":8443", ""},
		"a mapped port listens on loopback": {"8443:41001,9443:41002", 9443, "127.0.0.1:41002", ""},
		"a port that is not declared":       {"8443:41001", 9443, "", "does not map it"},
		"a mapping without a colon":         {"8443", 8443, "", "not POD:LOCAL"},
		"a mapping to no port":              {"8443:x", 8443, "", "is no port"},
		"a mapping beyond the port range":   {"8443:70000", 8443, "", "is no port"},
		"a port is matched whole":           {"18443:41001", 8443, "", "does not map it"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := listenAddress(tc.portMap, tc.port)
			if tc.wantErr != "" {
				require.ErrorContains(t, err, tc.wantErr)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestAddressIsWhereOtherPodsReachAPort(t *testing.T) {
	for name, tc := range map[string]struct{ ports, ip, want string }{
		"a container":                      {"", "10.1.2.3", "10.1.2.3:9445"},
		"a container with an IPv6 address": {"", "fd00::1", "[fd00::1]:9445"},
		"a pod that was not told":          {"", "", ""},
		"what is no address":               {"", "host.example", ""},
		"a mapped port":                    {"9445:41001", "10.1.2.3", "127.0.0.1:41001"},
		"a port that is not declared":      {"8443:41001", "10.1.2.3", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(EnvPorts, tc.ports)
			t.Setenv(EnvIP, tc.ip)
			require.Equal(t, tc.want, Address(9445))
		})
	}
}

func TestListenUsesThePortMap(t *testing.T) {
	var l net.Listener
	port := 0
	for range 20 { // another process may take the port that was free a moment ago
		free, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		port = free.Addr().(*net.TCPAddr).Port
		require.NoError(t, free.Close())
		t.Setenv(EnvPorts, "8443:"+strconv.Itoa(port))
		if l, err = Listen(t.Context(), 8443); !errors.Is(err, syscall.EADDRINUSE) {
			require.NoError(t, err)
			break
		}
	}
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	require.Equal(t, port, l.Addr().(*net.TCPAddr).Port)
}

func TestPathsLieBelowTheRoot(t *testing.T) {
	require.Equal(t, "/var/run/x", Path("/var/run/x"))
	t.Setenv(EnvRoot, "/srv/pod")
	require.Equal(t, "/srv/pod/var/run/x", Path("/var/run/x"))
	require.Equal(t, "/srv/pod/etc", Path("../../etc"), "no path leaves the pod's root")
}

func TestConfigReadsTheServiceAccountBelowTheRoot(t *testing.T) {
	dir := t.TempDir()
	sa := filepath.Join(dir, serviceAccountDir)
	require.NoError(t, os.MkdirAll(sa, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(sa, "token"), []byte("t0"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(sa, "namespace"), []byte("ns1\n"), 0o600))
	t.Setenv(EnvRoot, dir)
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "6443")

	c, err := Config()
	require.NoError(t, err)
	require.Equal(t, "https://127.0.0.1:6443", c.Host)
	require.Equal(t, "t0", c.BearerToken)
	require.Equal(t, filepath.Join(sa, "ca.crt"), c.CAFile)
	require.Equal(t, "ns1", Namespace("fallback"))

	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err = Config()
	require.ErrorContains(t, err, "this process does not run in a pod")
}

func TestNamespaceAndNameComeFromTheDownwardAPI(t *testing.T) {
	t.Setenv(EnvRoot, t.TempDir())
	require.Equal(t, "fallback", Namespace("fallback"))
	t.Setenv(EnvNamespace, "ns2")
	t.Setenv(EnvName, "pod-0")
	require.Equal(t, "ns2", Namespace("fallback"))
	require.Equal(t, "pod-0", Name())
}
