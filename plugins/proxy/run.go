// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/proxy"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// signalled is added to the number of the signal that ended a program, as shells do.
const signalled = 128

// kubectl is the user's kubectl, with a kubeconfig for each cluster in a folder of this run.
type kubectl struct{ program, folder string }

// prepare writes the kubeconfigs.
func (o *KubectlOptions) prepare(program string, clusters []string) (*kubectl, error) {
	hub, err := o.f.One()
	if err != nil {
		return nil, err
	}
	folder, err := privateFolder(o.f.UI)
	if err != nil {
		return nil, fmt.Errorf("making a folder for kubectl: %w", err)
	}
	k := &kubectl{program: program, folder: folder}
	for _, name := range clusters {
		config, err := proxy.Kubeconfig(hub, o.way(name), o.f.GivenNamespace())
		if err == nil {
			err = clientcmd.WriteToFile(*config, k.config(name)) // with mode 0600
		}
		if err != nil {
			k.remove()
			return nil, fmt.Errorf("writing a kubeconfig for kubectl: %w", err)
		}
	}
	return k, nil
}

// privateFolder makes a folder that only the user can read, in memory where the machine has a place for that.
func privateFolder(u *ui.UI) (folder string, err error) {
	for _, parent := range []string{u.Streams.Getenv("XDG_RUNTIME_DIR"), "/dev/shm"} {
		if parent == "" || !filepath.IsAbs(parent) {
			continue
		}
		if folder, err = os.MkdirTemp(parent, "kubectl-ocm-"); err == nil {
			return folder, nil
		}
	}
	return os.MkdirTemp("", "kubectl-ocm-")
}

func (k *kubectl) config(cluster string) string { return filepath.Join(k.folder, cluster) }

func (k *kubectl) remove() { _ = os.RemoveAll(k.folder) }

// run runs kubectl on a cluster and returns its exit code. Signals to this process go on to kubectl, which decides what
// they mean; so the kubeconfig is removed whatever ends it.
func (k *kubectl) run(ctx context.Context, cluster string, words []string, s ui.Streams) (int, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), k.program, words...) //nolint:gosec // the user chose program and words
	cmd.Env = append(cmd.Environ(), clientcmd.RecommendedConfigPathEnvVar+"="+k.config(cluster))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.In, s.Out, s.Err
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("starting %s: %w", k.program, err)
	}
	ended := make(chan struct{})
	defer close(ended)
	go forward(ctx, cmd.Process, s, signals, ended)
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return codeOf(exit), nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return 0, fmt.Errorf("running %s: %w", k.program, err)
	}
	return 0, nil
}

// codeOf returns the exit code of a program as a shell shows it.
func codeOf(exit *exec.ExitError) int {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalled + int(status.Signal())
	}
	return exit.ExitCode()
}

// signalGrace is how long after the end of a context a signal may arrive that has ended it.
const signalGrace = 200 * time.Millisecond

// forward passes signals on until the program has ended. An interrupt reaches it by itself where there is a terminal,
// which sends it to all of its processes. Where the context ends without a signal, the program is interrupted.
func forward(ctx context.Context, process *os.Process, s ui.Streams, signals <-chan os.Signal, ended <-chan struct{}) {
	done := ctx.Done()
	var alone <-chan time.Time
	for {
		select {
		case <-ended:
			return
		case got := <-signals:
			if got != os.Interrupt || !ui.IsTerminal(s.In) {
				_ = process.Signal(got)
			}
			done, alone = nil, nil
		case <-done:
			done, alone = nil, s.Clock.After(signalGrace)
		case <-alone:
			alone = nil
			_ = process.Signal(os.Interrupt)
		}
	}
}
