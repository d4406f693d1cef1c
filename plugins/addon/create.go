// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/template"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/addon"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/complete"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// sample is the cluster that a template is rendered for when none is named.
const sample = "cluster1"

// CreateOptions are the flags of addon create.
type CreateOptions struct {
	options.Change
	options.Files
	// Wanted is the add-on.
	Wanted addon.CreateOptions
	// Registration is the kind of the credentials of its agent on the hub; empty means none.
	Registration string
	// Render is the cluster to print the manifests for; empty creates the add-on.
	Render string

	f *options.Factory
}

func newCreate(f *options.Factory) *cobra.Command {
	o := &CreateOptions{f: f}
	cmd := &cobra.Command{
		Use: "create NAME {-f FILE | -k FOLDER}", Short: "Create an add-on from manifests", Args: options.Args(1, 1, "the name of the add-on"),
		Long: options.Long(`
		Create an AddOnTemplate NAME-VERSION from the objects in files, and register the add-on
		NAME on the hub with that template as its default. Manifests may contain variables such as
		{{CLUSTER_NAME}}. Objects without a namespace get the one of -n.

		Before anything is sent, the template is rendered as the hub will render it: errors are
		refused, likely mistakes are warned about. --render prints what a cluster of the hub would
		get, and changes nothing.`),
		Example: options.Example(`
		kubectl ocm addon create metrics -f manifests/ -n metrics --context hub
		kubectl ocm addon create metrics -f manifests/ --version 0.2.0 --overwrite --context hub
		kubectl ocm addon create metrics -f manifests/ --hub-permission clusterrole/metrics-agent --placement apps/everywhere
		kubectl ocm addon create metrics -f manifests/ --render cluster1 --context hub`),
		ValidArgsFunction: complete.AddOns(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Wanted.Name = args[0]
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Diffed(o.Run(cmd.Context()))
		},
	}
	flags := cmd.Flags()
	o.Change.AddFlags(flags, options.Parts{Diff: true})
	o.Files.AddFlags(flags)
	flags.StringVar(&o.Wanted.Version, "version", "0.0.1", "version of the template")
	flags.StringVar(&o.Registration, "registration", "", "give the agent access to the hub: csr or token")
	flags.StringSliceVar(&o.Wanted.Permissions, "hub-permission", nil, "rights of the agent on the hub: "+
		"clusterrole/NAME in the namespace of its cluster, NAMESPACE/role/NAME or NAMESPACE/clusterrole/NAME; may be repeated")
	flags.StringVar(&o.Wanted.DisplayName, "display-name", "", "human-readable name of the add-on")
	flags.StringVar(&o.Wanted.Description, "description", "", "what the add-on does")
	flags.StringToStringVar(&o.Wanted.Labels, "labels", nil, "labels of the add-on")
	flags.StringVar(&o.Wanted.Placement, "placement", "", "add this Placement, NAMESPACE/NAME, to the install strategy")
	flags.BoolVar(&o.Wanted.Overwrite, "overwrite", false, "change an existing template, or the default template of the add-on")
	flags.StringVar(&o.Render, "render", "", "print what this cluster would get, and change nothing")
	flags.BoolVar(&o.Wanted.Registered, "hub-registration", false, "")
	flags.Lookup("hub-registration").Hidden = true
	options.Hidden(flags, "cluster-role-bind", "hub-permission")
	options.Hidden(flags, "placement-ref", "placement")
	_ = cmd.RegisterFlagCompletionFunc("placement", complete.AllPlacements(f))
	_ = cmd.RegisterFlagCompletionFunc("render", complete.Clusters(f))
	return cmd
}

// Validate checks the flags.
func (o *CreateOptions) Validate() error {
	if err := addon.CheckName(o.Wanted.Name); err != nil {
		return err
	}
	if given, err := o.Given(); err != nil {
		return err
	} else if !given {
		return options.Usage("there are no manifests: -f is missing", "kubectl ocm addon create NAME -f FOLDER")
	}
	switch o.Registration {
	case "", "csr":
	case "token":
		o.f.UI.Warn("the Klusterlet decides whether an agent gets a certificate or a token: " +
			"spec.registrationConfiguration.addOnKubeClientRegistrationDriver.authType")
	default:
		return options.Usage("wrong value "+strconv.Quote(o.Registration)+" for --registration", "use csr or token")
	}
	if o.Render != "" && (o.Diff || o.DryRun != "none") {
		return options.Usage("--render already changes nothing", "leave --dry-run and --diff out")
	}
	return o.Change.Check(o.f.UI)
}

// Run renders the template, then creates the add-on or prints what a cluster would get.
func (o *CreateOptions) Run(ctx context.Context) error {
	u := o.f.UI
	sources, err := o.Sources(u)
	if err != nil {
		return err
	}
	wanted := o.Wanted
	wanted.Common, wanted.Sources, wanted.Namespace = o.Common(u, nil), sources, o.f.GivenNamespace()
	wanted.Registered = wanted.Registered || o.Registration != ""
	made, err := wanted.Template()
	if err != nil {
		return err
	}
	if wanted.Hub, err = o.f.Cluster(""); err != nil {
		return err
	}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: sample}}
	if o.Render != "" {
		if cluster, err = addon.ReadCluster(ctx, wanted.Hub, o.Render); err != nil {
			return err
		}
	}
	rendered, err := o.render(made, cluster)
	if err != nil {
		return err
	}
	if o.Render != "" {
		return o.print(rendered)
	}
	result, err := addon.Create(ctx, wanted)
	if err != nil {
		return err
	}
	if err := o.Finish(u, "AddOnResult", result.Items); err != nil || o.Reads() {
		return err
	}
	if o.Wanted.Placement == "" {
		u.Next("kubectl ocm addon enable " + o.Wanted.Name + " -c CLUSTER" + ui.ContextFlag(wanted.Hub))
	}
	return nil
}

// render renders the template as the hub does, and warns of likely mistakes.
func (o *CreateOptions) render(made *addonv1alpha1.AddOnTemplate, cluster *clusterv1.ManagedCluster) (template.Result, error) {
	out, err := template.Render(template.Input{
		Template: made, Cluster: cluster, AddOn: &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: o.Wanted.Name, Namespace: cluster.Name}},
	})
	var fault *template.Error
	if errors.As(err, &fault) {
		at := strings.Join(strings.Fields(fault.Source+" "+fault.Manifest+" "+fault.Field), " ")
		return out, &fleet.Error{Kind: fleet.Usage, Message: "the template cannot be rendered: " + at, Cause: fault.Problem,
			Fix: fleet.Advice(fault.Fix), Err: err}
	}
	for _, text := range out.Warnings {
		o.f.UI.Warn("%s", text)
	}
	return out, err
}

// print prints what a cluster would get.
func (o *CreateOptions) print(out template.Result) error {
	var names []string
	var objects []map[string]any
	for _, m := range out.Manifests {
		names, objects = append(names, fleet.Change{Object: m}.Name()), append(objects, m.Object)
	}
	if !o.Format.Machine() {
		return o.f.UI.Documents(objects)
	}
	value := struct {
		Namespace string           `json:"namespace"`
		Items     []map[string]any `json:"items"`
	}{out.Namespace, objects}
	return o.f.UI.Result(o.Format, "AddOnRendering", value, names)
}
