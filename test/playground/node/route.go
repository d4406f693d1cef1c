// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// endpoint is what a Service address leads to: a port of an address, or the
// reason why there is none.
type endpoint struct {
	address string
	port    int32
}

// routeService finds a ready endpoint of the Service that has the cluster
// address host, and serves port. found is false when no Service has it.
func routeService(services []*corev1.Service, slices []*discoveryv1.EndpointSlice, host string, port int32) (target endpoint, found bool, err error) {
	for _, service := range services {
		if service.Spec.ClusterIP != host {
			continue
		}
		for _, p := range service.Spec.Ports {
			if p.Port == port {
				target, err = readyEndpoint(service, p.Name, slices)
				return target, true, err
			}
		}
		return endpoint{}, true, fmt.Errorf("service %s/%s has no port %d", service.Namespace, service.Name, port)
	}
	return endpoint{}, false, nil
}

// readyEndpoint picks the first ready endpoint of a Service's port.
func readyEndpoint(service *corev1.Service, portName string, slices []*discoveryv1.EndpointSlice) (endpoint, error) {
	for _, slice := range slices {
		if slice.Namespace != service.Namespace || slice.Labels[discoveryv1.LabelServiceName] != service.Name {
			continue
		}
		for _, port := range slice.Ports {
			if port.Port == nil || (port.Name != nil && *port.Name != portName) {
				continue
			}
			for _, e := range slice.Endpoints {
				if (e.Conditions.Ready == nil || *e.Conditions.Ready) && len(e.Addresses) > 0 {
					return endpoint{address: e.Addresses[0], port: *port.Port}, nil
				}
			}
		}
	}
	return endpoint{}, fmt.Errorf("service %s/%s has no ready endpoint", service.Namespace, service.Name)
}
