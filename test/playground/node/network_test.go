// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func freeNetwork() *network {
	n := newNetwork()
	n.free = func(int) bool { return true }
	return n
}

func TestEveryPodHasItsOwnAddressAndPorts(t *testing.T) {
	n := freeNetwork()
	seen := map[int]bool{}
	var first string
	for i := range 10 {
		address, local, err := n.claim("seed", "", []int32{8443, 9443})
		require.NoError(t, err)
		if i == 0 {
			first = address
		}
		require.Equal(t, i > 0, address != first)
		for _, port := range local {
			require.False(t, seen[port], "loopback port %d is given twice", port)
			seen[port] = true
			require.GreaterOrEqual(t, port, firstLocal)
			require.LessOrEqual(t, port, lastLocal)
		}
		got, err := n.lookup(address, 9443)
		require.NoError(t, err)
		require.Equal(t, local[9443], got)
	}
}

func TestAPodGetsItsAddressAndPortsAgain(t *testing.T) {
	n := freeNetwork()
	_, _, err := n.claim("other", "", []int32{8443})
	require.NoError(t, err)
	address, local, err := n.claim("uid", "", []int32{8443})
	require.NoError(t, err)
	n.release(address)
	_, err = n.lookup(address, 8443)
	require.ErrorContains(t, err, "no pod of the process node has the address")
	again, localAgain, err := n.claim("uid", address, []int32{8443})
	require.NoError(t, err)
	require.Equal(t, address, again)
	require.Equal(t, local, localAgain)

	third, _, err := n.claim("uid2", address, nil)
	require.NoError(t, err)
	require.NotEqual(t, address, third, "an address in use is not given away")
	for _, wanted := range []string{"192.168.0.1", "nonsense"} {
		got, _, err := n.claim("uid3", wanted, nil)
		require.NoError(t, err)
		require.NotEqual(t, wanted, got)
	}
}

func TestAPortThatSomebodyElseListensOnIsLeftAlone(t *testing.T) {
	n := freeNetwork()
	_, local, err := n.claim("uid", "", []int32{8443})
	require.NoError(t, err)
	busy := local[8443]
	n = freeNetwork()
	n.free = func(port int) bool { return port != busy }
	_, local, err = n.claim("uid", "", []int32{8443})
	require.NoError(t, err)
	require.NotEqual(t, busy, local[8443])
	n.free = func(int) bool { return false }
	_, _, err = n.claim("uid", "", []int32{8443})
	require.ErrorContains(t, err, "all from 20000 to 31999 are in use")
}

func TestAddressesRunOut(t *testing.T) {
	n := freeNetwork()
	var err error
	given := 0
	for err == nil && given < 300 {
		_, _, err = n.claim("uid", "", nil)
		given++
	}
	require.ErrorContains(t, err, "all of 10.244.0.0/24 are in use")
	require.Equal(t, 254, given)
}

func TestPortMap(t *testing.T) {
	require.Equal(t, "8443:20001,9443:20002", portMap(map[int32]int{9443: 20002, 8443: 20001}))
	require.Empty(t, portMap(nil))
}

func TestAServiceLeadsToAReadyEndpointOfItsPort(t *testing.T) {
	service := func(namespace, name, ip string, ports ...corev1.ServicePort) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: ports}}
	}
	slice := func(namespace, name string, ready *bool, address, port string, number int32) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}},
			Ports:      []discoveryv1.EndpointPort{{Name: &port, Port: &number}},
		}
	}
	services := []*corev1.Service{
		service("a", "web", "10.96.0.7", corev1.ServicePort{Name: "http", Port: 80}, corev1.ServicePort{Name: "hook", Port: 443}),
		service("b", "web", "10.96.0.8", corev1.ServicePort{Name: "http", Port: 80}),
	}
	slices := []*discoveryv1.EndpointSlice{
		slice("b", "web", nil, "10.244.0.9", "http", 8080),
		slice("a", "other", nil, "10.244.0.8", "hook", 1),
		slice("a", "web", ptr.To(false), "10.244.0.2", "hook", 9443),
		slice("a", "web", ptr.To(true), "10.244.0.3", "hook", 9443),
		slice("a", "web", ptr.To(false), "10.244.0.3", "http", 8080),
	}
	for name, tc := range map[string]struct {
		host  string
		port  int32
		want  endpoint
		found bool
		err   string
	}{
		"ready":               {"10.96.0.7", 443, endpoint{"10.244.0.3", 9443}, true, ""},
		"of unknown state":    {"10.96.0.8", 80, endpoint{"10.244.0.9", 8080}, true, ""},
		"not ready":           {"10.96.0.7", 80, endpoint{}, true, "service a/web has no ready endpoint"},
		"another port":        {"10.96.0.7", 81, endpoint{}, true, "service a/web has no port 81"},
		"not a service's":     {"10.244.0.3", 443, endpoint{}, false, ""},
		"a headless services": {"None", 443, endpoint{}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, found, err := routeService(services, slices, tc.host, tc.port)
			if tc.err != "" {
				require.EqualError(t, err, tc.err)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, tc.found, found)
			require.Equal(t, tc.want, got)
		})
	}
}
