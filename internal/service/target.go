// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Header names the Service in a request from the hub to the agent.
const Header = "Ocm-Service"

// Schemes of a Service.
const (
	schemeHTTP  = "http"
	schemeHTTPS = "https"
)

// errTarget means that a header is not one of the hub.
var errTarget = errors.New("the request names no Service as the hub does")

// Target is a port of a Service, and how it is spoken to.
type Target struct {
	Namespace, Name string
	// Scheme is http or https.
	Scheme string
	Port   uint16
}

// Parse reads the two elements of a path that mean a Service: its namespace, and NAME:PORT or
// SCHEME:NAME:PORT, where the scheme defaults to https.
func Parse(namespace, element string) (t Target, ok bool) {
	parts := strings.Split(element, ":")
	if len(parts) == 2 {
		parts = slices.Insert(parts, 0, schemeHTTPS)
	}
	if len(parts) != 3 {
		return Target{}, false
	}
	port, ok := readPort(parts[2])
	t = Target{Namespace: namespace, Name: parts[1], Scheme: parts[0], Port: port}
	return t, ok && isLabel(t.Namespace) && isLabel(t.Name) && isScheme(t.Scheme)
}

// readPort reads a port in the one way in which it is written.
func readPort(text string) (uint16, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err == nil && n > 0 && strconv.FormatUint(n, 10) == text
}

func isLabel(name string) bool { return len(validation.IsDNS1123Label(name)) == 0 }

func isScheme(text string) bool { return text == schemeHTTP || text == schemeHTTPS }

// IsTLS reports whether the Service is spoken to over TLS.
func (t Target) IsTLS() bool { return t.Scheme == schemeHTTPS }

// Host is the name of the Service inside its cluster.
func (t Target) Host() string { return t.Name + "." + t.Namespace + ".svc" }

// String returns the elements of the path.
func (t Target) String() string {
	return t.Namespace + "/" + t.Scheme + ":" + t.Name + ":" + strconv.Itoa(int(t.Port))
}

// Set names the Service in the headers of a request to the agent.
func (t Target) Set(h http.Header) { h.Set(Header, t.String()) }

// Named reports whether a request from the hub is for a Service, and not for the API server.
func Named(h http.Header) bool { return len(h[Header]) > 0 }

// Read returns the Service that a request from the hub names.
func Read(h http.Header) (Target, error) {
	if len(h[Header]) != 1 {
		return Target{}, errTarget
	}
	namespace, element, _ := strings.Cut(h[Header][0], "/")
	t, ok := Parse(namespace, element)
	if !ok || t.String() != h[Header][0] {
		return Target{}, errTarget
	}
	return t, nil
}

// isAPIServer reports whether it is the Service of the API server, which is reached with the identity of the user only.
func (t Target) isAPIServer() bool { return t.Namespace == "default" && t.Name == "kubernetes" }
