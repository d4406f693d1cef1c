// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/lock"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

// command is a subcommand: what it runs also decides which flags it has.
type command struct {
	name, summary string
	// lock is the lease that only one process holds at a time.
	lock string
	// start runs its loops while it holds the lock.
	start func(*process, context.Context) error
	// operator configures the registration from a Klusterlet. registration keeps the cluster
	// registered and reports it; works applies works.
	operator, registration, works bool
}

// commands are the subcommands that run an agent.
var commands = []command{
	{
		name: "run", summary: "serve the Klusterlet: registration and works",
		lock: "klusterlet-agent-lock", start: (*process).register, operator: true, registration: true, works: true,
	},
	{
		name: "operator", summary: "run the agents of all Klusterlets of this cluster, as Deployments",
		lock: "klusterlet-lock", start: (*process).operate,
	},
	{
		name: "agent", summary: "registration and works by flags, without a Klusterlet",
		lock: "klusterlet-agent-lock", start: (*process).register, registration: true, works: true,
	},
	{
		name: "registration", summary: "registration by flags, without works",
		lock: "registration-agent-lock", start: (*process).register, registration: true,
	},
	{
		name: "work", summary: "works by flags, with the mounted hub kubeconfig of a registration",
		lock: "work-agent-lock", start: (*process).workMounted, works: true,
	},
}

// gates returns the feature gates of what the command runs.
func (c command) gates() map[string]agent.Gate {
	gates := map[string]agent.Gate{}
	if c.registration {
		maps.Copy(gates, agent.Gates())
	}
	if c.works {
		maps.Copy(gates, agent.WorkGates())
	}
	return gates
}

// lockTimes replace a dead agent within a minute, at three writes a minute.
var lockTimes = lock.Times{Duration: time.Minute, Period: 20 * time.Second, Retry: 2 * time.Second, Patience: 40 * time.Second}

// options are the parsed command line.
type options struct {
	command
	kubeconfig string
	// spokeKubeconfig leads to the managed cluster; empty: it is the one that the agent runs on.
	spokeKubeconfig string
	namespace       string
	verbosity       int
	// terminateOn are the files whose change ends the process.
	terminateOn []string
	// unlocked leaves out the lock, times are its timings.
	unlocked bool
	times    lock.Times
	tls      observe.TLS
	// syncLabels copies the labels of Klusterlets; noAddOns makes no namespace of add-ons.
	syncLabels, noAddOns bool
	// klusterlet is the Klusterlet to serve; empty for the other commands, which have settings.
	klusterlet string
	settings   agent.Settings
	// hubKubeconfig is the mounted kubeconfig, for works alone.
	hubKubeconfig string

	flags *pflag.FlagSet
}

func (o options) usage() string {
	var b strings.Builder
	b.WriteString("ocm-agent turns a cluster into a managed cluster.\n\nUsage:\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  ocm-agent %-20s %s\n", c.name+" [flags]", c.summary)
	}
	b.WriteString("  ocm-agent version\n")
	if o.flags != nil {
		b.WriteString("\nFlags of ocm-agent " + o.name + ":\n" + o.flags.FlagUsages())
	}
	return b.String()
}

// parse parses the command line. Its errors are for the user.
func parse(args []string) (options, error) {
	if len(args) == 0 {
		return options{}, errors.New("a command is required")
	}
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == args[0] })
	switch {
	case slices.Contains([]string{"-h", "--help", "help"}, args[0]):
		return options{}, pflag.ErrHelp
	case args[0] == "version":
		return options{command: command{name: args[0]}}, nil
	case i < 0:
		return options{}, fmt.Errorf("unknown command %q", args[0])
	}
	o := options{command: commands[i], flags: pflag.NewFlagSet("ocm-agent", pflag.ContinueOnError), times: lockTimes}
	o.flags.Usage = func() {}
	finish := []func() error{o.commonFlags()}
	switch {
	case o.operator:
		o.flags.StringVar(&o.klusterlet, "klusterlet", operatorv1.DefaultKlusterletName, "name of the Klusterlet to serve")
	case o.name == "operator":
		o.flags.BoolVar(&o.syncLabels, "enable-sync-labels", false, "copy the labels of a Klusterlet to what is made for its agent")
		o.flags.BoolVar(&o.noAddOns, "disable-default-addon-namespace", false, "do not make the namespace "+operatorv1.NamespaceAgentAddOn)
	case o.registration || o.works:
		finish = append(finish, o.settingsFlags())
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
	for _, check := range finish {
		if err := check(); err != nil {
			return o, err
		}
	}
	return o, nil
}

// commonFlags adds the flags of every command; the returned function checks their values.
func (o *options) commonFlags() func() error {
	f, t := o.flags, &o.times
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster that the agent runs on; empty: the pod's ServiceAccount")
	f.StringVar(&o.namespace, "namespace", "", "namespace of the agent; empty: the pod's")
	f.IntVarP(&o.verbosity, "v", "v", 0, "verbosity of the log: 0, 1 or 3")
	f.StringArrayVar(
		&o.terminateOn, "terminate-on-files", nil, "file that ends the process, to be started again, when it appears, changes or vanishes; may be repeated",
	)
	f.BoolVar(&o.unlocked, "disable-leader-election", false, "work without the lock that keeps other processes of this agent from working")
	f.DurationVar(&t.Duration, "leader-election-lease-duration", t.Duration, "how long a process that does not renew its lock keeps it")
	f.DurationVar(&t.Patience, "leader-election-renew-deadline", t.Patience, "how long a process goes on working that cannot renew its lock")
	f.DurationVar(&t.Period, "leader-election-retry-period", t.Period, "time between two renewals of the lock")
	version := f.String("tls-min-version", "", "lowest TLS version for health and metrics: VersionTLS12 or VersionTLS13; older ones mean VersionTLS12")
	suites := f.StringSlice("tls-cipher-suites", nil, "cipher suites for health and metrics with TLS 1.2; empty: Go's")
	// API priority and fairness limits requests.
	f.Float32("kube-api-qps", 0, "")
	f.Int("kube-api-burst", 0, "")
	o.hide("kube-api-qps", "kube-api-burst")
	return func() (err error) {
		t.Retry = min(t.Retry, t.Period)
		if t.Period <= 0 || t.Patience <= t.Period || t.Duration <= t.Patience || t.Duration < time.Second {
			return errors.New("--leader-election-lease-duration, -renew-deadline and -retry-period: each must be longer than the next, the first at least a second")
		}
		o.tls, err = observe.ParseTLS(*version, *suites)
		return err
	}
}

// hide hides flags that are known because Open Cluster Management's agents have them: they have
// no effect here, or their use is an error that says what to do.
func (o *options) hide(names ...string) {
	for _, name := range names {
		_ = o.flags.MarkHidden(name)
	}
}
