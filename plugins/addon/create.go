// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
	// Name and Version of the add-on.
	Name, Version string
	// Registered gives the agent access to the hub; Registration is the kind of its credentials.
	Registered   bool
	Registration string
	// Permissions are rights of the agent on the hub.
	Permissions []string
	// DisplayName and Description are for people.
	DisplayName, Description string
	// Labels are added to the labels of the add-on.
	Labels map[string]string
	// Placement is added to the install strategy, NAMESPACE/NAME.
	Placement string
	// Overwrite changes an existing template or default.
	Overwrite bool
	// Render is the cluster to print the manifests for; empty creates the add-on.
	Render string

	f *options.Factory
}

func newCreate(f *options.Factory) *cobra.Command {
	o := &CreateOptions{f: f}
	cmd := &cobra.Command{
		Use: "create NAME {-f FILE | -k FOLDER}", Short: "Create an add-on from manifests",
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
		Args:              options.Args(1, 1, "the name of the add-on"),
		ValidArgsFunction: complete.AddOns(f),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Diffed(o.Run(cmd.Context()))
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *CreateOptions) addFlags(cmd *cobra.Command) {
	flags, f := cmd.Flags(), o.f
	o.Change.AddFlags(flags, options.Parts{Diff: true})
	o.Files.AddFlags(flags)
	flags.StringVar(&o.Version, "version", "0.0.1", "version of the template")
	flags.StringVar(&o.Registration, "registration", "", "give the agent access to the hub: csr or token")
	flags.StringSliceVar(
		&o.Permissions, "hub-permission", nil,
		"rights of the agent on the hub: clusterrole/NAME in the namespace of its cluster, NAMESPACE/role/NAME or NAMESPACE/clusterrole/NAME; may be repeated",
	)
	flags.StringVar(&o.DisplayName, "display-name", "", "human-readable name of the add-on")
	flags.StringVar(&o.Description, "description", "", "what the add-on does")
	flags.StringToStringVar(&o.Labels, "labels", nil, "labels of the add-on")
	flags.StringVar(&o.Placement, "placement", "", "add this Placement, NAMESPACE/NAME, to the install strategy")
	flags.BoolVar(&o.Overwrite, "overwrite", false, "change an existing template, or the default template of the add-on")
	flags.StringVar(&o.Render, "render", "", "print what this cluster would get, and change nothing")
	flags.BoolVar(&o.Registered, "hub-registration", false, "")
	flags.Lookup("hub-registration").Hidden = true
	options.Hidden(flags, "cluster-role-bind", "hub-permission")
	options.Hidden(flags, "placement-ref", "placement")
	_ = cmd.RegisterFlagCompletionFunc("placement", complete.AllPlacements(f))
	_ = cmd.RegisterFlagCompletionFunc("render", complete.Clusters(f))
}

// Validate checks the flags.
func (o *CreateOptions) Validate() error {
	if err := addon.CheckName(o.Name); err != nil {
		return err
	}
	switch given, err := o.Given(); {
	case err != nil:
		return err
	case !given:
		return options.Usage("there are no manifests: -f is missing", "kubectl ocm addon create NAME -f FOLDER")
	}
	switch o.Registration {
	case "", "csr":
	case "token":
		o.f.UI.Warn(
			"the Klusterlet decides whether an agent gets a certificate or a token: spec.registrationConfiguration.addOnKubeClientRegistrationDriver.authType",
		)
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
	wanted := addon.CreateOptions{Common: o.Common(u, nil), Name: o.Name, Version: o.Version, Sources: sources, Namespace: o.f.GivenNamespace(),
		Registered:  o.Registered || o.Registration != "",
		Permissions: o.Permissions, DisplayName: o.DisplayName, Description: o.Description, Labels: o.Labels, Placement: o.Placement, Overwrite: o.Overwrite}
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
	if o.Placement == "" {
		u.Next("kubectl ocm addon enable " + o.Name + " -c CLUSTER" + ui.ContextFlag(wanted.Hub))
	}
	return nil
}

// render renders the template as the hub does, and warns of likely mistakes.
func (o *CreateOptions) render(made *addonv1alpha1.AddOnTemplate, cluster *clusterv1.ManagedCluster) (template.Result, error) {
	out, err := template.Render(template.Input{
		Template: made, Cluster: cluster, AddOn: &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: o.Name, Namespace: cluster.Name}},
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
	u := o.f.UI
	if o.Format.Machine() {
		value := struct {
			Namespace string                       `json:"namespace"`
			Items     []*unstructured.Unstructured `json:"items"`
		}{out.Namespace, out.Manifests}
		var names []string
		for _, m := range out.Manifests {
			names = append(names, fleet.Change{Object: m}.Name())
		}
		return u.Result(o.Format, "AddOnRendering", value, names)
	}
	objects := make([]map[string]any, 0, len(out.Manifests))
	for _, m := range out.Manifests {
		objects = append(objects, m.Object)
	}
	return u.Documents(objects)
}
