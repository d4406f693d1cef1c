// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package playground

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// heldPort reserves a loopback port. Its socket is bound with SO_REUSEPORT but never
// listens, so that kube-apiserver (run with --permit-port-sharing) can listen there, and
// listen again after a restart, while the system gives the port to no other process.
type heldPort struct {
	port int
	once sync.Once
	file *os.File
}

// holdPort reserves the given port of 127.0.0.1, or any free one for 0.
func holdPort(port int) (*heldPort, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, fmt.Errorf("making a socket: %w", err)
	}
	unix.CloseOnExec(fd)
	h := &heldPort{file: os.NewFile(uintptr(fd), "port")}
	if err := errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
	); err != nil {
		return nil, errors.Join(fmt.Errorf("sharing a port: %w", err), h.release())
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, errors.Join(fmt.Errorf("holding port %d of 127.0.0.1: %w", port, err), h.release())
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the held port: %w", err), h.release())
	}
	bound, ok := name.(*unix.SockaddrInet4)
	if !ok {
		return nil, errors.Join(fmt.Errorf("reading the held port: unexpected address %T", name), h.release())
	}
	h.port = bound.Port
	return h, nil
}

// release frees the port; it may be called twice.
func (h *heldPort) release() (err error) {
	h.once.Do(func() { err = h.file.Close() })
	return err
}
