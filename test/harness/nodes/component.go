// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodes

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// readyAddresses are the addresses of programs that have no better health check than to
// listen.
var readyAddresses = map[Component]string{
	Etcd:              "127.0.0.1:2379",
	ControllerManager: "127.0.0.1:10257",
	Scheduler:         "127.0.0.1:10259",
	Kubelet:           "127.0.0.1:10248",
	Proxy:             "127.0.0.1:10249",
}

// program returns the path of a program.
func (c *Cluster) program(component Component) string {
	switch component {
	case Etcd:
		return c.fabric.binaries.Etcd
	case APIServer:
		return c.fabric.binaries.APIServer
	case ControllerManager:
		return c.fabric.binaries.ControllerManager
	case Scheduler:
		return c.fabric.binaries.Scheduler
	case Kubelet:
		return c.fabric.binaries.Kubelet
	case Proxy:
		return c.fabric.binaries.Proxy
	default:
		return string(component)
	}
}

// spawn starts a program without waiting for it.
func (c *Cluster) spawn(component Component) error {
	started, err := c.cell.start(process.Spec{
		Name: string(component), Dir: c.dir, WorkDir: "/",
		Path: c.program(component), Args: c.arguments(component),
		Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"},
	})
	if err == nil {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		c.running[component] = started
	}
	return err
}

// launch starts a program and returns when it is ready. If it ends instead, the error
// holds the end of its log.
func (c *Cluster) launch(ctx context.Context, component Component) error {
	if err := c.spawn(component); err != nil {
		return err
	}
	var last error
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		if !process.Alive(c.dir, string(component)) {
			return false, fmt.Errorf("%s ended; end of its log:\n%s", component, process.Tail(c.LogFile(component), 12))
		}
		last = c.Ready(ctx, component)
		return last == nil, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("waiting for %s: %w: %w; end of its log:\n%s", component, err, last, process.Tail(c.LogFile(component), 12))
	}
	return err
}

// Ready returns why a program does not answer; nil when it does.
func (c *Cluster) Ready(ctx context.Context, component Component) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var connection net.Conn
	var err error
	switch component {
	case APIServer:
		_, err = c.Get(ctx, "/readyz")
		return err
	case Containerd:
		connection, err = new(net.Dialer).DialContext(ctx, "unix", c.file("containerd.sock"))
	default:
		connection, err = c.cell.dial(ctx, "tcp", readyAddresses[component])
	}
	if err != nil {
		return err
	}
	return connection.Close()
}

// LogFile returns the path of a program's log, which is removed with the cluster.
func (c *Cluster) LogFile(component Component) string {
	return filepath.Join(c.dir, string(component)+".log")
}

// KillProcess ends one program without warning, as a crash would. Pods keep running when
// containerd or kubelet dies.
func (c *Cluster) KillProcess(component Component) error {
	if err := process.End(c.dir, string(component)); err != nil {
		return fmt.Errorf("killing %s of %s: %w", component, c.Name, err)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	<-c.running[component].Done() // only now its last thread, and so its port, is gone
	return nil
}

// Restart ends one program, if it runs, and starts it again; it returns when the new
// process answers.
func (c *Cluster) Restart(ctx context.Context, component Component) error {
	if err := c.KillProcess(component); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.launch(ctx, component); err != nil {
		return fmt.Errorf("restarting %s of %s: %w", component, c.Name, err)
	}
	return nil
}

// Pause suspends one program: connections stay open, and nothing answers.
func (c *Cluster) Pause(component Component) error {
	return process.Signal(c.dir, string(component), true)
}

// Resume ends a Pause.
func (c *Cluster) Resume(component Component) error {
	return process.Signal(c.dir, string(component), false)
}
