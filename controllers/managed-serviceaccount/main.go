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
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

// program is the name of the program and of its image.
const program = authenticationv1beta1.AddOnName

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
	cluster, namespace               string
	verbosity                        int
}

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
	usage := "usage: " + program + " agent [flags]\n\n" + o.declare(flags)
	err := flags.Parse(args)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return exitOK
	case err == nil && (flags.NArg() != 1 || flags.Arg(0) != "agent"):
		err = errors.New("give the command agent")
	}
	if err = errors.Join(err, o.check()); err != nil {
		fmt.Fprintf(stderr, "error: %v\n\n%s", err, usage)
		return exitUsage
	}
	log := logr.FromSlogHandler(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.Level(-o.verbosity)}))
	klog.SetLogger(log.WithName("client"))
	log.Info("Process starts", "version", version.Get(), "cluster", o.cluster, "namespace", o.namespace)
	if err := serve(logr.NewContext(ctx, log), o); err != nil {
		log.Error(err, "Process ended with an error")
		return exitError
	}
	return exitOK
}

// declare declares the flags, and returns their usage.
func (o *options) declare(f *pflag.FlagSet) string {
	f.Usage = func() {}
	f.StringVar(&o.hubKubeconfig, "hub-kubeconfig", "", "kubeconfig of the hub")
	f.StringVar(&o.managedKubeconfig, "managed-kubeconfig", "", "kubeconfig of the managed cluster; empty: the pod's own cluster")
	f.StringVar(&o.cluster, "cluster-name", "", "name of the managed cluster, and of its namespace on the hub")
	f.StringVar(&o.namespace, "addon-namespace", "", "namespace of the accounts on the managed cluster")
	f.IntVarP(&o.verbosity, "v", "v", 0, "log level: 0 states, 1 decisions, 3 details")
	return f.FlagUsages()
}

// check returns which flags are missing.
func (o *options) check() error {
	var missing []error
	for _, flag := range []struct{ name, value string }{
		{"hub-kubeconfig", o.hubKubeconfig}, {"cluster-name", o.cluster}, {"addon-namespace", o.namespace},
	} {
		if flag.value == "" {
			missing = append(missing, fmt.Errorf("--%s: must be set", flag.name))
		}
	}
	return errors.Join(missing...)
}

// serve runs the loop, and the server of health, until ctx ends.
func serve(ctx context.Context, o options) error {
	hub, err := connection(o.hubKubeconfig)
	if err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	managed, err := connection(o.managedKubeconfig)
	if err != nil {
		return fmt.Errorf("connecting to the managed cluster: %w", err)
	}
	c := agent.Config{
		Cluster: o.cluster, Namespace: o.namespace, HubAddress: hub.Host, CA: func() ([]byte, error) { return authority(managed) },
		Clock: clock.RealClock{}, Log: logr.FromContextOrDiscard(ctx),
	}
	if c.Hub, err = dynamic.NewForConfig(hub); err != nil {
		return fmt.Errorf("connecting to the hub: %w", err)
	}
	if c.Managed, err = dynamic.NewForConfig(managed); err != nil {
		return fmt.Errorf("connecting to the managed cluster: %w", err)
	}
	loop := agent.New(c)
	health := observe.NewServer(observe.Options{Now: c.Clock.Now, Log: c.Log.WithName("observe")})
	health.AddReady("watches", loop.Err)
	listener, err := inpod.Listen(ctx, observe.Port)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		defer stop()
		ended <- health.Run(ctx, listener)
	}()
	err = loop.Run(ctx)
	stop()
	return errors.Join(err, <-ended)
}

// connection returns the configuration for a kubeconfig, or for the cluster of the pod.
// Certificates and tokens that the kubeconfig names as files are read again when they change.
func connection(kubeconfig string) (*rest.Config, error) {
	config, err := inpod.Config()
	if kubeconfig != "" {
		if filepath.IsAbs(kubeconfig) {
			kubeconfig = inpod.Path(kubeconfig)
		}
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // the API server limits its clients itself
	config.UserAgent = program + "/" + version.Get()
	return config, nil
}

// authority returns the PEM certificates that verify a cluster. A file is read each time,
// because an authority is replaced while the process runs.
func authority(c *rest.Config) ([]byte, error) {
	if c.CAFile == "" {
		return c.CAData, nil
	}
	return os.ReadFile(c.CAFile)
}
