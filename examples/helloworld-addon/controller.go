// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"embed"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/gotemplate"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/registration"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/runner"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/values"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

//go:embed manifests
var manifests embed.FS

// helloworld is the add-on: its manifests are templates, and its agent has access to the
// hub, with a certificate that is approved automatically.
type helloworld struct {
	*gotemplate.AddOn
	registration.KubeClient
}

// The compiler checks that no method has a misspelled name.
var _ interface {
	addonkit.Registrar
	addonkit.Approver
	addonkit.Permitter
	addonkit.Placed
	addonkit.Healthy
} = helloworld{}

// control runs the add-on on the hub.
func control(ctx context.Context, o options) error {
	if err := required("agent-image", o.image); err != nil {
		return err
	}
	hub, err := connect(o.hubKubeconfig)
	if err != nil {
		return err
	}
	addOn, err := newAddOn(hub, o.image)
	if err != nil {
		return err
	}
	return runner.Run(ctx, runner.Config{Client: hub, Clock: clock.RealClock{}}, addOn)
}

// newAddOn reads the templates. Values that users set override the defaults set here.
func newAddOn(hub dynamic.Interface, image string) (addonkit.AddOn, error) {
	configs := values.NewConfigs(hub)
	templates, err := gotemplate.New(gotemplate.Config{
		Options: addonkit.Options{
			Name: name, Configs: []addonv1alpha1.ConfigGroupResource{values.Kind}, WaitConfigured: true,
		},
		Files: manifests, Dir: "manifests",
		Values: []values.Func{
			values.Fixed(map[string]any{"Verbosity": 0}),
			configs.Values, configs.Image("Image", image), values.Annotation,
		},
		Namespace: configs.InstallNamespace,
	})
	return helloworld{AddOn: templates}, err
}

// Permissions returns what the agent may do in the namespace of its cluster on the hub:
// read ConfigMaps, and see whether the add-on is being removed.
func (helloworld) Permissions(context.Context, addonkit.Instance) ([]addonkit.Permission, error) {
	read := []string{"list", "watch"}
	return []addonkit.Permission{{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: read},
		{APIGroups: []string{addonv1alpha1.GroupVersion.Group}, Resources: []string{"managedclusteraddons"}, ResourceNames: []string{name}, Verbs: read},
	}}}, nil
}

// Health returns that the lease renewed by the agent reports the health.
func (helloworld) Health() addonkit.Health { return addonkit.Health{Mode: addonkit.HealthLease} }
