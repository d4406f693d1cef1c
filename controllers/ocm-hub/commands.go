// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/gc"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

// arguments are what the command line says beyond the processConfig, and how to read it.
type arguments struct {
	processConfig
	kubeconfig string
	verbosity  int
	cleanup    []string
	gates      map[string]string
	approvers  []string
	identities []string
	renderers  []string
}

func newArguments() *arguments {
	return &arguments{processConfig: processConfig{
		Clock: clock.RealClock{}, Policy: certs.DefaultPolicy(), Steady: func() { collect(collectAt) }, Election: election{Times: lockTimes},
	}}
}

// command returns a command that starts a process with the flags that every process has.
func (a *arguments) command(stderr io.Writer, use, short string, run func(context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.complete(stderr); err != nil {
				return err
			}
			a.Log.Info("Process starts", "command", cmd.Name(), "version", version.Get(), "pod", inpod.Name())
			return run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&a.kubeconfig, "kubeconfig", "", "kubeconfig of the hub; empty means the pod's ServiceAccount")
	flags.IntVarP(&a.verbosity, "v", "v", 0, "log level: 0 states, 1 decisions, 3 details")
	flags.StringVar(&a.Profile.MinVersion, "tls-min-version", "", "lowest TLS version of its servers: VersionTLS12 or VersionTLS13; older means VersionTLS12")
	flags.StringSliceVar(&a.Profile.Suites, "tls-cipher-suites", nil, "cipher suites of its servers with TLS 1.2; empty means those of Go")
	return cmd
}

// complete checks the flags and connects to the hub.
func (a *arguments) complete(stderr io.Writer) error {
	a.Log = logger(stderr, a.verbosity)
	t := a.Election.Times
	if t.Retry <= 0 || t.Patience <= t.Retry || t.Duration <= t.Patience {
		return errors.New("the durations of the leader election must be, from long to short: lease, renew deadline, retry period")
	}
	a.Election.Times.Period = min(t.Period, t.Patience/2)
	if err := clustermanager.CheckLabels(a.Labels); err != nil {
		return fmt.Errorf("--labels: %w", err)
	}
	limits, err := observe.ParseTLS(a.Profile.MinVersion, a.Profile.Suites)
	if err != nil {
		return err
	}
	a.TLS = limits
	order, bad := gc.ParseOrder(a.cleanup)
	for _, err := range bad {
		a.Log.Error(err, "Ignoring an entry of --gc-resource-list")
	}
	a.Cleanup = order
	a.REST, err = connection(a.kubeconfig)
	return err
}

// electionFlags adds the flags of processes of which one leads.
func (a *arguments) electionFlags(flags *pflag.FlagSet) {
	e := &a.Election
	flags.StringVar(&e.Namespace, "namespace", "", "namespace of the lease of the leader; empty means that of the pod")
	flags.BoolVar(&e.Disabled, "disable-leader-election", false, "work without a lease; there must be no other process of this kind")
	flags.DurationVar(&e.Times.Duration, "leader-election-lease-duration", e.Times.Duration, "how long a leader that does not renew its lease is considered alive")
	flags.DurationVar(&e.Times.Patience, "leader-election-renew-deadline", e.Times.Patience, "how long a leader works without renewing its lease")
	flags.DurationVar(&e.Times.Retry, "leader-election-retry-period", e.Times.Retry, "time between two attempts to get the lease")
}

// clusterFlags adds the flags about the objects of clusters.
func (a *arguments) clusterFlags(flags *pflag.FlagSet) {
	flags.StringToStringVar(&a.Labels, "labels", nil, "labels of the namespace and the RBAC objects of every cluster, as key=value,...")
	flags.StringSliceVar(&a.cleanup, "gc-resource-list", nil,
		"resources to remove with a cluster, in this order, as group/version/resource,...; empty means add-ons, then works")
}

// importFlags adds the flags about the clusters of Cluster API.
func (a *arguments) importFlags(flags *pflag.FlagSet) {
	flags.StringVar(&a.AgentImage, "agent-image", agentImage(),
		"image of the agent on imported clusters; empty means that beside the hub's image (environment: AGENT_IMAGE)")
}

func (a *arguments) manifestFlags(flags *pflag.FlagSet) {
	flags.IntVar(&a.ManifestLimit, "manifestLimit", webhook.MaxManifests, "maximum total size of the manifests of one work, in bytes")
}

func (a *arguments) gateFlags(flags *pflag.FlagSet) {
	flags.StringToStringVar(&a.gates, "feature-gates", nil, "features to switch, as name=true or name=false,...")
}

func (a *arguments) checkManifestLimit() error {
	if a.ManifestLimit < 1 || a.ManifestLimit > webhook.LimitOfManifests {
		return fmt.Errorf("--manifestLimit=%d: must be 1 to %d bytes, since a work and its status are one object", a.ManifestLimit, webhook.LimitOfManifests)
	}
	return nil
}

// operatorCommand returns the command that runs the compact layout, "run", or the operator of
// the split layout, "operator".
func operatorCommand(stderr io.Writer, use, short string) *cobra.Command {
	a, split, hosted := newArguments(), clustermanager.DefaultSplit(), false
	var cmd *cobra.Command
	cmd = a.command(stderr, use, short, func(ctx context.Context) error {
		p := &process{processConfig: a.processConfig, Hosted: hosted}
		if use == "operator" {
			if err := split.Complete(); err != nil {
				return err
			}
			a.passOn(cmd.Flags(), &split)
			p.Split = &split
		}
		return p.run(ctx)
	})
	cmd.PreRunE = func(*cobra.Command, []string) error { return a.checkManifestLimit() }
	flags := cmd.Flags()
	a.electionFlags(flags)
	a.clusterFlags(flags)
	a.importFlags(flags)
	a.manifestFlags(flags)
	flags.BoolVar(&a.SyncLabels, "enable-sync-labels", false, "copy the labels of the ClusterManager to the namespace and the RBAC objects of every cluster")
	flags.DurationVar(&a.Policy.SignerLife, "signer-duration", a.Policy.SignerLife, "lifetime of the certificate authority of the webhooks")
	flags.DurationVar(&a.Policy.LeafLife, "serving-cert-duration", a.Policy.LeafLife, "lifetime of the serving certificates of the webhooks")
	flags.BoolVar(&a.KeepAPIs, "skip-remove-crds", false, "leave the APIs and all objects of users in place when a ClusterManager is deleted")
	if use == "run" {
		flags.BoolVar(&hosted, "hosted", false, "run the hub of another cluster, that of the kubeconfig; an operator on this cluster installs and removes it")
	} else {
		flags.Int32Var(&split.Replicas, "deployment-replicas", 0, "replicas of every Deployment; 0 means 3 if there are several control plane nodes, else 1")
		flags.StringVar(&split.ControlPlane, "control-plane-node-label-selector", "", "labels of the nodes of the control plane; empty means those of Kubernetes")
		flags.StringVar(&split.PullSecret, "image-pull-secret-name", split.PullSecret, "Secret in the operator's namespace with the credentials for images")
	}
	return cmd
}

// passOn gives the components of the split layout the flags that are about them.
func (a *arguments) passOn(flags *pflag.FlagSet, to *clustermanager.Split) {
	for name, list := range map[string]*[]string{
		"gc-resource-list": &to.Registration, "agent-image": &to.Registration, "manifestLimit": &to.Webhook, "v": &to.All,
	} {
		if f := flags.Lookup(name); f.Changed || name == "agent-image" && a.AgentImage != "" {
			*list = append(*list, "--"+name+"="+strings.Trim(f.Value.String(), "[]"))
		}
	}
}

// componentCommand returns the command that runs one part of the hub in the split layout.
func componentCommand(stderr io.Writer, p part) *cobra.Command {
	a := newArguments()
	c := &component{part: p}
	cmd := a.command(stderr, string(p), "Run the loops of "+string(p), func(ctx context.Context) (err error) {
		c.processConfig = a.processConfig
		if c.features, err = clustermanager.ParseGates(a.gates); err != nil {
			return fmt.Errorf("--feature-gates: %w", err)
		}
		c.features.Labels, c.features.Renderers = a.Labels, a.renderers
		if on, _ := strconv.ParseBool(a.gates[clustermanager.GateAutoApproval]); on {
			if c.features.AutoApprove = a.identities; len(a.identities) == 0 {
				c.features.AutoApprove = a.approvers
			}
		}
		return c.run(ctx)
	})
	flags := cmd.Flags()
	a.electionFlags(flags)
	a.gateFlags(flags)
	switch p {
	case partRegistration:
		a.clusterFlags(flags)
		a.importFlags(flags)
		flags.StringSliceVar(&a.renderers, "import-renderers", nil, "what decides the settings of imported agents; empty means what is there")
		flags.StringSliceVar(&a.approvers, "cluster-auto-approval-users", nil, "users whose clusters are accepted without an administrator")
		flags.StringSliceVar(&a.identities, "auto-approved-csr-users", nil, "the same; replaces the users of --cluster-auto-approval-users")
	case partPlacement:
		flags.StringVar(&c.certDir, "cert-dir", defaultCertDir, "folder with the certificate of the debug endpoint, tls.crt and tls.key")
	}
	return cmd
}

// defaultCertDir is where servers look for their certificates.
const defaultCertDir = "/tmp/k8s-webhook-server/serving-certs"

// webhookCommand returns the command that serves webhooks in the split layout.
func webhookCommand(stderr io.Writer) *cobra.Command {
	a := newArguments()
	s := &admissionServer{}
	known := slices.Sorted(maps.Keys(services))
	use := "webhook [" + strings.Join(known, "|") + "]..."
	cmd := a.command(stderr, use, "Serve admission and conversion: these webhooks, or all", func(ctx context.Context) (err error) {
		s.processConfig = a.processConfig
		if s.features, err = clustermanager.ParseGates(a.gates); err != nil {
			return fmt.Errorf("--feature-gates: %w", err)
		}
		return s.run(ctx)
	})
	cmd.Args, cmd.ValidArgs = cobra.OnlyValidArgs, known
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if s.names = args; len(args) == 0 {
			s.names = known
		}
		for name, port := range map[string]int{"port": s.port, "health-probe-port": s.healthPort} {
			if port < 1 || port > 65535 {
				return fmt.Errorf("--%s=%d: choose a port from 1 to 65535", name, port)
			}
		}
		if s.port == s.healthPort {
			return fmt.Errorf("--port=%d is that of health and metrics, too: choose another one", s.port)
		}
		return a.checkManifestLimit()
	}
	flags := cmd.Flags()
	a.gateFlags(flags)
	a.manifestFlags(flags)
	flags.StringVar(&s.certDir, "cert-dir", defaultCertDir, "folder with a folder for each webhook, which has its tls.crt and tls.key")
	flags.IntVar(&s.port, "port", webhook.Port, "port of admission and conversion")
	flags.IntVar(&s.healthPort, "health-probe-port", observe.Port, "port of health and metrics")
	flags.StringVar(&s.clientsFile, "client-ca-file", "", "file with the authorities of the API servers that may call; any client may if there is none")
	return cmd
}
