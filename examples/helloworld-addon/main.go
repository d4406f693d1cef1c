// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

// name is the name of the add-on, of the program and of its image.
const (
	name    = "helloworld"
	program = name + "-addon"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

// collectAt is how much the heap grows, in percent, before it is collected: an agent has
// little memory and much time. GOGC overrides it.
const collectAt = 30

// options are the values of the flags.
type options struct {
	hubKubeconfig, managedKubeconfig string
	cluster, namespace, addOn        string
	image                            string
	verbosity                        int
}

// commands are the commands by name.
var commands = map[string]func(context.Context, options) error{"controller": control, "agent": runAgent, "cleanup": cleanUp}

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run runs the program with its arguments and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, flags := options{}, pflag.NewFlagSet(program, pflag.ContinueOnError)
	usage := "usage: " + program + " controller|agent|cleanup [flags]\n\n" + o.declare(flags)
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "error: %v\n\n%s", err, usage)
		return exitUsage
	}
	command := commands[flags.Arg(0)]
	if command == nil || flags.NArg() != 1 {
		fmt.Fprintf(stderr, "error: give one command: controller, agent or cleanup\n\n%s", usage)
		return exitUsage
	}
	log := logr.FromSlogHandler(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.Level(-o.verbosity)}))
	klog.SetLogger(log.WithName("client"))
	log.Info("Starting helloworld", "command", flags.Arg(0))
	if err := command(logr.NewContext(ctx, log), o); err != nil {
		log.Error(err, "Helloworld ended with an error", "command", flags.Arg(0))
		return exitError
	}
	return exitOK
}

// declare declares the flags, and returns their usage.
func (o *options) declare(f *pflag.FlagSet) string {
	f.Usage = func() {}
	f.StringVar(&o.hubKubeconfig, "hub-kubeconfig", "", "kubeconfig of the hub; empty: the pod's own cluster")
	f.StringVar(&o.managedKubeconfig, "managed-kubeconfig", "", "agent, cleanup: kubeconfig of the managed cluster; empty: the pod's own cluster")
	f.StringVar(&o.cluster, "cluster-name", "", "agent: name of the managed cluster, and of its namespace on the hub")
	f.StringVar(&o.namespace, "addon-namespace", "", "agent, cleanup: namespace that the agent is installed in")
	f.StringVar(&o.addOn, "addon-name", name, "agent, cleanup: name of the add-on")
	f.StringVar(&o.image, "agent-image", "", "controller: image of the agent")
	f.IntVarP(&o.verbosity, "verbosity", "v", 0, "how much is logged")
	return f.FlagUsages()
}

// required returns an error if a flag is missing.
func required(flag, value string) error {
	if value == "" {
		return fmt.Errorf("--%s: must be set", flag)
	}
	return nil
}

// connect returns a client for a kubeconfig, or for the cluster that the pod runs in.
// Certificates and tokens that the kubeconfig names as files are read again when they
// change.
func connect(kubeconfig string) (dynamic.Interface, error) {
	read := inpod.Config
	if kubeconfig != "" {
		read = func() (*rest.Config, error) {
			if filepath.IsAbs(kubeconfig) {
				kubeconfig = inpod.Path(kubeconfig)
			}
			return clientcmd.BuildConfigFromFlags("", kubeconfig)
		}
	}
	config, err := read()
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	config.QPS = -1 // the API server limits its clients itself
	return dynamic.NewForConfig(config)
}
