// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

// options are the parsed command line.
type options struct {
	command    string
	kubeconfig string
	namespace  string
	verbosity  int
	// klusterlet is the Klusterlet to serve; empty for "agent", which has settings.
	klusterlet string
	settings   agent.Settings

	flags *pflag.FlagSet
}

const synopsis = `ocm-agent turns a cluster into a managed cluster.

Usage:
  ocm-agent run [flags]      serve the Klusterlet: registration, works
  ocm-agent agent [flags]    registration and works by flags, without a Klusterlet
  ocm-agent version
`

func (o options) usage() string {
	if o.flags == nil {
		return synopsis
	}
	return synopsis + "\nFlags of ocm-agent " + o.command + ":\n" + o.flags.FlagUsages()
}

// parse parses the command line. Its errors are for the user.
func parse(args []string) (options, error) {
	if len(args) == 0 {
		return options{}, errors.New("a command is required")
	}
	o := options{command: args[0], flags: pflag.NewFlagSet("ocm-agent", pflag.ContinueOnError)}
	o.flags.Usage = func() {}
	o.flags.StringVar(&o.kubeconfig, "kubeconfig", "", "self-contained kubeconfig of the managed cluster; empty: the pod's ServiceAccount")
	o.flags.StringVar(&o.namespace, "namespace", "", "namespace of the agent; empty: the pod's")
	o.flags.IntVarP(&o.verbosity, "v", "v", 0, "verbosity of the log: 0, 1 or 3")
	finish := func() error { return nil }
	switch o.command {
	case "run":
		o.flags.StringVar(&o.klusterlet, "klusterlet", operatorv1.DefaultKlusterletName, "name of the Klusterlet to serve")
	case "agent":
		finish = o.settingsFlags()
	case "version":
	case "-h", "--help", "help":
		return options{}, pflag.ErrHelp
	default:
		return options{}, fmt.Errorf("unknown command %q", o.command)
	}
	if err := o.flags.Parse(args[1:]); err != nil {
		return o, err
	}
	if o.flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", o.flags.Arg(0))
	}
	if o.namespace == "" {
		o.namespace = inpod.Namespace(operatorv1.NamespaceAgent)
	}
	return o, finish()
}
