// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Addresses of the virtual network; no packet carries them.
const (
	// podRange is the node's range of pod addresses.
	podRange = "10.244.0.0/24"
	// nodeAddress is the node's own.
	nodeAddress = "10.0.0.10"
)

// Local ports of pods are below the range from which Linux and macOS assign ports to
// outgoing connections, so that only another listener can conflict.
const (
	firstLocal = 20000
	lastLocal  = 31999
)

// network maps the addresses and ports of pods to loopback ports.
type network struct {
	mu sync.Mutex
	// pods maps address and container port to a loopback port.
	pods map[string]map[int32]int
	// taken are the loopback ports in use.
	taken map[int]bool
	// free reports whether nothing listens on a loopback port.
	free func(int) bool
}

func newNetwork() *network {
	return &network{pods: map[string]map[int32]int{}, taken: map[int]bool{}, free: listens}
}

// listens reports whether a loopback port can be listened on.
func listens(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // it does not block
	return err == nil && l.Close() == nil
}

// claim gives a pod an address, the wanted one if it is free, and a loopback port for
// each of its ports. seed, the pod's UID, determines where the search starts, so that a
// restarted pod gets the same ports.
func (n *network) claim(seed, wanted string, ports []int32) (string, map[int32]int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	address, err := n.address(wanted)
	if err != nil {
		return "", nil, err
	}
	local := map[int32]int{}
	for _, port := range ports {
		found, err := n.localPort(fmt.Sprintf("%s/%d", seed, port))
		if err != nil {
			return "", nil, err
		}
		n.taken[found] = true
		local[port] = found
	}
	n.pods[address] = local
	return address, local, nil
}

func (n *network) address(wanted string) (string, error) {
	prefix := netip.MustParsePrefix(podRange)
	if parsed, err := netip.ParseAddr(wanted); err == nil && prefix.Contains(parsed) && n.pods[wanted] == nil {
		return wanted, nil
	}
	// The first two addresses are the network's and the gateway's.
	for a := prefix.Addr().Next().Next(); prefix.Contains(a.Next()); a = a.Next() {
		if n.pods[a.String()] == nil {
			return a.String(), nil
		}
	}
	return "", errors.New("finding a pod address: all of " + podRange + " are in use")
}

func (n *network) localPort(seed string) (int, error) {
	const count = lastLocal - firstLocal + 1
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(seed)) // never fails
	start := int(hash.Sum32() % count)
	for i := range count {
		port := firstLocal + (start+i)%count
		if !n.taken[port] && n.free(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("finding a loopback port: all from %d to %d are in use", firstLocal, lastLocal)
}

// release frees a pod's address and ports.
func (n *network) release(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, port := range n.pods[address] {
		delete(n.taken, port)
	}
	delete(n.pods, address)
}

// lookup finds the loopback port behind a pod's port.
func (n *network) lookup(address string, port int32) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	ports, ok := n.pods[address]
	if !ok {
		return 0, fmt.Errorf("no pod of the process node has the address %s", address)
	}
	local, ok := ports[port]
	if !ok {
		return 0, fmt.Errorf("the pod at %s declares no port %d", address, port)
	}
	return local, nil
}

// portMap formats the map as pkg/inpod reads it.
func portMap(local map[int32]int) string {
	var entries []string
	for _, port := range slices.Sorted(maps.Keys(local)) {
		entries = append(entries, fmt.Sprintf("%d:%d", port, local[port]))
	}
	return strings.Join(entries, ",")
}
