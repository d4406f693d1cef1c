// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/proxy"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// ServiceOptions are the flags of proxy service.
type ServiceOptions struct {
	options.Output
	// Cluster is the managed cluster, and AgentNamespace that of its agent.
	Cluster, AgentNamespace string
	// LocalPort is where to listen; 0 takes one that is free.
	LocalPort uint16
	// Name is the Service; empty lists what the cluster exposes.
	Name string

	f      *options.Factory
	wanted proxy.Service
}

func newService(f *options.Factory) *cobra.Command {
	o := &ServiceOptions{f: f}
	cmd := &cobra.Command{
		Use: "service [NAMESPACE/][http:|https:]NAME[:PORT] -c CLUSTER", Short: "Reach the Services that a managed cluster exposes",
		Args: options.Args(0, 1, "the Service"),
		Long: options.Long(`
		Without a Service, list what a managed cluster exposes, as the ConfigMap
		` + connectv1alpha1.ConfigMapExposedServices + ` beside its agent says. That takes the right to read it there.

		With a Service, listen on a port of this machine and lead what arrives there to the Service, through
		the hub of --context and with the credentials that you have for the hub, until it is interrupted. You
		need the right to clusterservices/proxy on the hub. Only programs of this machine are let in, and in a
		browser only pages of the Service itself.

		A port and a protocol that are left out are those that the list has. A protocol that the list leaves
		open is https. The Service is not told who you are, and redirects and cookies of it are kept back.`),
		Example: options.Example(`
		kubectl ocm proxy service -c cluster1 --context hub
		kubectl ocm proxy service monitoring/prometheus -c cluster1 --context hub
		kubectl ocm proxy service monitoring/http:prometheus:9090 -c cluster1 --local-port 9090 --context hub`),
		ValidArgsFunction: complete.First(complete.Services(f, func() (string, string) { return o.Cluster, o.AgentNamespace })),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Name = args[0]
			}
			return f.Do(cmd, o.Validate, o.Run)
		},
	}
	o.AddFlags(cmd.Flags())
	cmd.Flags().StringVarP(&o.Cluster, "cluster", "c", "", "name of the managed cluster")
	cmd.Flags().StringVar(&o.AgentNamespace, "agent-namespace", operatorv1.NamespaceAgent, "namespace of the agent on the managed cluster")
	cmd.Flags().Uint16Var(&o.LocalPort, "local-port", 0, "port of this machine to listen on; 0 takes one that is free")
	_ = cmd.RegisterFlagCompletionFunc("cluster", complete.Clusters(f))
	return cmd
}

// Validate checks the flags and the name.
func (o *ServiceOptions) Validate() error {
	if o.Cluster == "" {
		return options.Usage("no cluster is named", "for example -c cluster1")
	}
	if err := cmp.Or(checkName(o.Cluster), naming.CheckValue(o.AgentNamespace, "a namespace", operatorv1.NamespaceAgent)); err != nil {
		return err
	}
	if o.Name == "" {
		return o.Format.Check()
	}
	var ok bool
	if o.wanted, ok = proxy.ParseService(o.f.GivenNamespace(), o.Name); !ok {
		return options.Usage(fmt.Sprintf("%q is not a Service", o.Name), "name it as NAMESPACE/NAME, NAMESPACE/NAME:PORT or NAMESPACE/http:NAME:PORT")
	}
	return o.Format.Check()
}

// Run lists what the cluster exposes, or leads to one Service.
func (o *ServiceOptions) Run(ctx context.Context, hub *fleet.Cluster) error {
	if err := proxy.Served(ctx, hub); err != nil {
		return err
	}
	if o.Name == "" {
		return o.list(ctx, hub)
	}
	chosen, err := proxy.Choose(ctx, hub, o.Cluster, o.AgentNamespace, o.wanted)
	if err != nil {
		return err
	}
	way := proxy.ServiceWay{Hub: hub, Cluster: o.Cluster, Namespace: o.AgentNamespace, Service: chosen}
	if err := way.Reach(ctx); err != nil {
		return err
	}
	return o.serve(ctx, way)
}

// list prints what the cluster exposes.
func (o *ServiceOptions) list(ctx context.Context, hub *fleet.Cluster) error {
	exposed, err := proxy.Exposed(ctx, hub, o.Cluster, o.AgentNamespace)
	if err != nil {
		return err
	}
	t := ui.Table{Heads: []string{"NAMESPACE", "SERVICE", "PORT", "PROTOCOL"}}
	names := make([]string, 0, len(exposed))
	for _, s := range exposed {
		port := "any"
		if s.Port != 0 {
			port = strconv.Itoa(int(s.Port))
		}
		names = append(names, s.String())
		t.Rows = append(t.Rows, []string{s.Namespace, s.Name, port, cmp.Or(s.Protocol, "any")})
	}
	u := o.f.UI
	switch {
	case o.Format.Machine():
		if exposed == nil {
			exposed = []proxy.Service{}
		}
		return u.Result(o.Format, "ProxyServiceList", exposed, names)
	case len(exposed) == 0:
		u.Note("cluster %s exposes no Services: there is no entry in configmap %s/%s there", o.Cluster, o.AgentNamespace, connectv1alpha1.ConfigMapExposedServices)
		return nil
	}
	return u.Report(t, o.Format == ui.Wide)
}

// headTimeout is how long a client on this machine may take to send the head of a request.
const headTimeout = 10 * time.Second

// serve leads requests to the Service until ctx is done.
func (o *ServiceOptions) serve(ctx context.Context, way proxy.ServiceWay) error {
	handler, err := way.Handler(ctx, (&teller{u: o.f.UI}).tell)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(o.LocalPort))))
	if err != nil {
		return fleet.Fail("no port of this machine can be listened on", err, fleet.Advice("leave out --local-port, which takes a port that is free"))
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headTimeout, ErrorLog: log.New(io.Discard, "", 0)}
	defer func() { _ = server.Close() }()
	if err := o.tell(way, "http://"+listener.Addr().String()); err != nil {
		_ = listener.Close()
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving %s: %w", listener.Addr(), err)
	}
	return nil
}

// tell prints where the Service is reached.
func (o *ServiceOptions) tell(way proxy.ServiceWay, url string) error {
	u := o.f.UI
	if o.Format.Machine() {
		return u.Result(o.Format, "ProxyService", struct {
			Cluster string `json:"cluster"`
			proxy.Service
			URL string `json:"url"`
		}{o.Cluster, way.Service, url}, []string{url})
	}
	u.Say("%s", url)
	u.Note("it leads to Service %s of cluster %s until you interrupt this", way.Service, o.Cluster)
	return nil
}

// teller prints what keeps requests from a Service: the same failure once, until one succeeds.
type teller struct {
	u    *ui.UI
	mu   sync.Mutex
	last string
}

func (t *teller) tell(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.last = ""
		return
	}
	line := err.Error()
	var e *fleet.Error
	if errors.As(err, &e) {
		if fix := ui.Fix(e.Fix); fix != "" {
			line += "; " + t.u.Own(fix)
		}
	}
	if line != t.last {
		t.u.Complain(line)
	}
	t.last = line
}
