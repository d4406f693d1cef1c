// SPDX-License-Identifier: Apache-2.0

// Package inpod gives our binaries access to the pod they run in: its files, its listeners
// and the API server of its cluster.
//
// In a real pod, paths and ports are those of the manifest. On the process node of
// test/playground the same binary runs as a plain process: every path lies below $OCM_ROOT,
// and $OCM_PORTS maps every port to a loopback port. Code that asks this package instead of
// the operating system runs unchanged in both.
//
// The package is public, for the agents of add-ons: exported names keep their meaning
// within a minor version.
package inpod

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/client-go/rest"
)

// Environment variables that a pod's processes get; the process node sets all of them.
const (
	// EnvRoot is the directory that holds the pod's file system; empty or unset means "/",
	// as in a container.
	EnvRoot = "OCM_ROOT"
	// EnvPorts maps the pod's ports to loopback ports: "8443:41001,9443:41002".
	EnvPorts = "OCM_PORTS"
	// EnvNamespace is the pod's namespace, from the downward API.
	EnvNamespace = "POD_NAMESPACE"
	// EnvName is the pod's name, from the downward API.
	EnvName = "POD_NAME"
	// EnvIP is the pod's IP address, from the downward API.
	EnvIP = "POD_IP"
)

// serviceAccountDir is where Kubernetes mounts a pod's ServiceAccount.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Path returns where the absolute in-pod path p is for this process.
func Path(p string) string { return filepath.Join(os.Getenv(EnvRoot), filepath.Clean("/"+p)) }

// Listen opens the pod's TCP port: on all addresses in a pod, on the mapped loopback port
// on the process node. The error names the port.
func Listen(ctx context.Context, port int) (net.Listener, error) {
	address, err := listenAddress(os.Getenv(EnvPorts), port)
	if err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening on port %d: %w", port, err)
	}
	return l, nil
}

// listenAddress resolves port with the port map of the process node.
func listenAddress(portMap string, port int) (string, error) {
	if portMap == "" {
		return fmt.Sprintf(":%d", port), nil
	}
	for entry := range strings.SplitSeq(portMap, ",") {
		pod, local, ok := strings.Cut(strings.TrimSpace(entry), ":")
		if !ok {
			return "", fmt.Errorf("reading %s: %q is not POD:LOCAL", EnvPorts, entry)
		}
		if pod != strconv.Itoa(port) {
			continue
		}
		if n, err := strconv.ParseUint(local, 10, 16); err != nil || n == 0 {
			return "", fmt.Errorf("reading %s: %q is no port", EnvPorts, local)
		}
		return net.JoinHostPort("127.0.0.1", local), nil
	}
	return "", fmt.Errorf("listening on port %d: %s does not map it; declare it in the container's ports", port, EnvPorts)
}

// Address returns where other pods reach the pod's TCP port, as HOST:PORT; empty if the pod's
// address is not known.
func Address(port int) string {
	if mapped := os.Getenv(EnvPorts); mapped != "" {
		address, err := listenAddress(mapped, port)
		if err != nil {
			return ""
		}
		return address
	}
	ip := os.Getenv(EnvIP)
	if net.ParseIP(ip) == nil {
		return ""
	}
	return net.JoinHostPort(ip, strconv.Itoa(port))
}

// Config returns the connection to the API server of the pod's cluster, authenticated by
// the pod's ServiceAccount. The token is read again from its file as it rotates. It fails
// when the process does not run in a pod.
func Config() (*rest.Config, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, fmt.Errorf("finding the API server: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: " +
			"this process does not run in a pod, and no kubeconfig is given")
	}
	tokenFile := Path(filepath.Join(serviceAccountDir, "token"))
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil, fmt.Errorf("reading the ServiceAccount token: %w", err)
	}
	return &rest.Config{
		Host:            "https://" + net.JoinHostPort(host, port),
		BearerToken:     string(token),
		BearerTokenFile: tokenFile,
		TLSClientConfig: rest.TLSClientConfig{CAFile: Path(filepath.Join(serviceAccountDir, "ca.crt"))},
	}, nil
}

// Namespace returns the pod's namespace: from the downward API's variable, else from the
// ServiceAccount's file, else the fallback.
func Namespace(fallback string) string {
	if ns := os.Getenv(EnvNamespace); ns != "" {
		return ns
	}
	raw, err := os.ReadFile(Path(filepath.Join(serviceAccountDir, "namespace")))
	if ns := strings.TrimSpace(string(raw)); err == nil && ns != "" {
		return ns
	}
	return fallback
}

// Known reports whether the process knows the name of its pod. No other process has that
// name at the same time: a container that restarts in a pod succeeds one that has ended.
func Known() bool { return os.Getenv(EnvName) != "" }

// Name returns the pod's name, or the host's name if the variable is not set.
func Name() string {
	host, _ := os.Hostname()
	return cmp.Or(os.Getenv(EnvName), host, "unknown")
}
