// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Factory gives commands access to the user's clusters and terminal.
type Factory struct {
	// UI is the terminal.
	UI *ui.UI

	flags    *genericclioptions.ConfigFlags
	warnings warnings
}

// NewFactory returns the factory for one run of the program.
func NewFactory(u *ui.UI) *Factory {
	f := genericclioptions.NewConfigFlags(true)
	f.ClusterName, f.AuthInfoName, f.BearerToken, f.APIServer = nil, nil, nil, nil
	f.Username, f.Password, f.TLSServerName = nil, nil, nil
	f.ProxyURL, f.CacheDir, f.DisableCompression, f.ImpersonateUserExtra = nil, nil, nil, nil
	return &Factory{UI: u, flags: f, warnings: warnings{u: u}}
}

// AddFlags adds the flags that every command has.
func (f *Factory) AddFlags(flags *pflag.FlagSet) {
	f.flags.AddFlags(flags)
	flags.StringVar(&f.UI.Color, "color", "auto", "colour the words that name a state: auto, always or never")
	flags.BoolVarP(&f.UI.Quiet, "quiet", "q", false, "print results and errors only")
}

// Check validates the common flags.
func (f *Factory) Check() error {
	switch f.UI.Color {
	case "auto", "always", "never":
	default:
		return Usage(fmt.Sprintf("wrong value %q for --color", f.UI.Color), "use auto, always or never")
	}
	if timeout := *f.flags.Timeout; timeout != "" {
		if _, err := clientcmd.ParseTimeout(timeout); err != nil {
			return Usage(fmt.Sprintf("wrong value %q for --request-timeout", timeout), "for example --request-timeout 30s")
		}
	}
	return nil
}

// Cluster opens the cluster of a context, or of the selected context if the name is
// empty. It makes no request.
func (f *Factory) Cluster(contextName string) (*fleet.Cluster, error) {
	loader := f.flags.ToRawKubeConfigLoader()
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, &fleet.Error{Message: "the kubeconfig cannot be read", Cause: err.Error(),
			Fix: fleet.Advice("correct the file, or name another by --kubeconfig or KUBECONFIG")}
	}
	if contextName == "" {
		contextName = f.selected(&raw)
	}
	if contextName == "" && len(raw.Clusters) == 0 && f.inPod() {
		return f.connect(loader, "")
	}
	entry, ok := raw.Contexts[contextName]
	if !ok {
		return nil, unknownContext(contextName, &raw)
	}
	if raw.Clusters[entry.Cluster] == nil {
		return nil, &fleet.Error{Message: fmt.Sprintf("context %q cannot be used", contextName),
			Cause: fmt.Sprintf("its cluster %q is not in the kubeconfig", entry.Cluster), Fix: fleet.Advice("kubectl config view")}
	}
	if entry.AuthInfo != "" && raw.AuthInfos[entry.AuthInfo] == nil {
		return nil, &fleet.Error{Message: fmt.Sprintf("context %q cannot be used", contextName),
			Cause: fmt.Sprintf("its user %q is not in the kubeconfig", entry.AuthInfo), Fix: fleet.Advice("kubectl config view")}
	}
	overrides := f.overrides()
	overrides.CurrentContext = contextName
	return f.connect(clientcmd.NewNonInteractiveClientConfig(raw, contextName, overrides, loader.ConfigAccess()), contextName)
}

// Do checks the flags of a command, opens the cluster of --context, and runs the command on it.
func (f *Factory) Do(cmd *cobra.Command, check func() error, run func(context.Context, *fleet.Cluster) error) error {
	if err := check(); err != nil {
		return err
	}
	c, err := f.Cluster("")
	if err != nil {
		return err
	}
	return run(cmd.Context(), c)
}

// File opens the cluster of a separate kubeconfig file's current context.
func (f *Factory) File(path string) (*fleet.Cluster, error) {
	raw, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, &fleet.Error{Message: "reading kubeconfig " + path, Cause: err.Error()}
	}
	return f.connect(clientcmd.NewNonInteractiveClientConfig(*raw, "", f.overrides(), nil), raw.CurrentContext)
}

func (f *Factory) connect(loader clientcmd.ClientConfig, contextName string) (*fleet.Cluster, error) {
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, &fleet.Error{Message: "reading context " + contextName, Cause: err.Error(), Fix: fleet.Advice("kubectl config view")}
	}
	config.UserAgent = "kubectl-ocm/" + version.Get()
	config.WarningHandler = &f.warnings
	return fleet.Connect(config, contextName)
}

// overrides returns the connection flags, which apply to every context.
func (f *Factory) overrides() *clientcmd.ConfigOverrides {
	o := &clientcmd.ConfigOverrides{}
	o.AuthInfo.Impersonate, o.AuthInfo.ImpersonateUID = *f.flags.Impersonate, *f.flags.ImpersonateUID
	o.AuthInfo.ImpersonateGroups = *f.flags.ImpersonateGroup
	o.AuthInfo.ClientCertificate, o.AuthInfo.ClientKey = *f.flags.CertFile, *f.flags.KeyFile
	o.ClusterInfo.CertificateAuthority, o.ClusterInfo.InsecureSkipTLSVerify = *f.flags.CAFile, *f.flags.Insecure
	o.Timeout = *f.flags.Timeout
	return o
}

func (f *Factory) selected(raw *clientcmdapi.Config) string {
	return cmp.Or(*f.flags.Context, raw.CurrentContext)
}

// Selected returns the name of the context that is used when a command names none; empty if there
// is none.
func (f *Factory) Selected() string {
	raw, _ := f.flags.ToRawKubeConfigLoader().RawConfig()
	return f.selected(&raw)
}

// inPod reports whether the program runs in a pod with a service account.
func (f *Factory) inPod() bool {
	_, err := os.Stat("/var/run/secrets/kubernetes.io/serviceaccount/token")
	return err == nil && f.UI.Streams.Getenv("KUBERNETES_SERVICE_HOST") != ""
}

// Kubeconfig returns access to the user's kubeconfig files.
func (f *Factory) Kubeconfig() clientcmd.ConfigAccess {
	return f.flags.ToRawKubeConfigLoader().ConfigAccess()
}

// Namespace returns the namespace given with -n, or else that of the context.
func (f *Factory) Namespace() string {
	ns, _, _ := f.flags.ToRawKubeConfigLoader().Namespace()
	return cmp.Or(f.GivenNamespace(), ns, "default")
}

// GivenNamespace returns the namespace given with -n; empty if none was.
func (f *Factory) GivenNamespace() string { return *f.flags.Namespace }

// GivenContext returns " --context NAME" as given by the user; empty if none was.
func (f *Factory) GivenContext() string {
	return ui.ContextFlag(&fleet.Cluster{Context: *f.flags.Context})
}

// Contexts returns the names of all contexts, sorted; none if the kubeconfig cannot be read.
func (f *Factory) Contexts() []string {
	raw, _ := f.flags.ToRawKubeConfigLoader().RawConfig()
	return slices.Sorted(maps.Keys(raw.Contexts))
}

// ContextOf returns the name of the context whose API server has the address server, ""
// if none has. The selected context wins over others, then the first by name.
func (f *Factory) ContextOf(server string) string {
	raw, _ := f.flags.ToRawKubeConfigLoader().RawConfig()
	server = strings.TrimSuffix(server, "/")
	for _, name := range append([]string{f.selected(&raw)}, f.Contexts()...) {
		c := raw.Contexts[name]
		if c != nil && raw.Clusters[c.Cluster] != nil && strings.TrimSuffix(raw.Clusters[c.Cluster].Server, "/") == server {
			return name
		}
	}
	return ""
}

// Guard adds to the error "is not a hub" which of the user's contexts are hubs.
// Contexts with an exec or auth plugin are not tried.
func (f *Factory) Guard(ctx context.Context, err error) error {
	var e *fleet.Error
	if !errors.Is(err, fleet.ErrNotHub) || !errors.As(err, &e) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, guardTimeout)
	defer cancel()
	hubs := f.Contexts()
	hubs = hubs[:min(len(hubs), guardLimit)]
	var group errgroup.Group
	for i, name := range hubs {
		group.Go(func() error {
			c, err := f.Cluster(name)
			if err != nil || c.Config.ExecProvider != nil || c.Config.AuthProvider != nil || !fleet.IsHub(ctx, c) {
				hubs[i] = ""
			}
			return nil
		})
	}
	_ = group.Wait()
	hubs = slices.DeleteFunc(hubs, func(name string) bool { return name == "" })
	if len(hubs) > 0 {
		e.Cause = strings.TrimPrefix(e.Cause+"; ", "; ") + "these contexts are hubs: " + strings.Join(hubs, ", ")
	}
	return err
}

// Limits of the search for hubs: the time, and the number of contexts.
const (
	guardTimeout = 2 * time.Second
	guardLimit   = 10
)

func unknownContext(name string, raw *clientcmdapi.Config) error {
	names := slices.Sorted(maps.Keys(raw.Contexts))
	e := &fleet.Error{Message: fmt.Sprintf("context %q does not exist", name), Fix: fleet.Advice("kubectl config get-contexts")}
	if name == "" {
		e.Message = "no context is selected"
	}
	switch {
	case len(names) == 0:
		e.Cause, e.Fix = "the kubeconfig is empty or missing", fleet.Advice("set KUBECONFIG, or name a file by --kubeconfig")
	case name == "":
		e.Cause, e.Fix = "the kubeconfig has no current-context", fleet.Advice("choose one by --context: "+strings.Join(names, ", "))
	default:
		e.Cause = "the kubeconfig has: " + strings.Join(names, ", ")
		if near := naming.Nearest(name, names); near != "" {
			e.Cause = fmt.Sprintf("did you mean %q?", near)
		}
	}
	return e
}
