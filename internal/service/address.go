// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

var (
	// ErrNoPort means that the Service has no such port.
	ErrNoPort = errors.New("no such port")
	// errNotDialled means that the agent never dials such a Service.
	errNotDialled = errors.New("such Services are not reached")
)

// Address returns where a Service is reached: at the address that its cluster has given to it alone.
// Any other address is one that somebody chose, and could be that of a node or of a service of the
// cloud, which trusts whoever runs there. The error is ErrNoPort, or says why no such Service is reached.
func Address(t Target, s *corev1.ServiceSpec) (netip.AddrPort, error) {
	if t.isAPIServer() {
		return netip.AddrPort{}, fmt.Errorf("%w: it is the API server, which is reached by managedclusters/proxy with the identity of the user", errNotDialled)
	}
	switch {
	case s.Type == corev1.ServiceTypeExternalName:
		return netip.AddrPort{}, fmt.Errorf("%w: its type is ExternalName, so it leads out of the cluster", errNotDialled)
	case s.ClusterIP == "" || s.ClusterIP == corev1.ClusterIPNone:
		return netip.AddrPort{}, fmt.Errorf("%w: it is headless; make another Service with a cluster IP for the same pods", errNotDialled)
	}
	at, err := netip.ParseAddr(s.ClusterIP)
	if err != nil || !isOrdinary(at) {
		return netip.AddrPort{}, fmt.Errorf("%w: %s is not an address of a Service", errNotDialled, s.ClusterIP)
	}
	if !slices.ContainsFunc(s.Ports, func(p corev1.ServicePort) bool {
		return p.Port == int32(t.Port) && (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP)
	}) {
		return netip.AddrPort{}, fmt.Errorf("%w: it has no TCP port %d", ErrNoPort, t.Port)
	}
	return netip.AddrPortFrom(at, t.Port), nil
}

// isOrdinary reports whether an address means one machine, elsewhere than the agent itself or on
// its link.
func isOrdinary(a netip.Addr) bool {
	a = a.Unmap()
	return a.Zone() == "" && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast() && !a.IsLinkLocalUnicast()
}
