// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// Split are the settings of the operator of the split layout.
type Split struct {
	// Replicas of every Deployment; zero means that the nodes of the control plane decide.
	Replicas int32
	// ControlPlane selects these nodes by label; empty means by the labels of Kubernetes.
	ControlPlane string
	// PullSecret is the name of the Secret in the operator's namespace with the credentials
	// for images.
	PullSecret string
	// Registration and Webhook are further arguments of the loops of registration and of the
	// webhooks; All are arguments of every component.
	Registration, Webhook, All []string
}

// DefaultSplit returns the settings without flags.
func DefaultSplit() Split { return Split{PullSecret: operatorv1.SecretImagePull} }

// Complete checks the settings and fills in defaults.
func (s *Split) Complete() error {
	s.PullSecret = cmp.Or(strings.TrimSpace(s.PullSecret), operatorv1.SecretImagePull)
	if s.Replicas < 0 {
		return fmt.Errorf("--deployment-replicas=%d: it must not be negative", s.Replicas)
	}
	if _, err := labels.Parse(s.ControlPlane); err != nil {
		return fmt.Errorf("--control-plane-node-label-selector: %w", err)
	}
	return nil
}

// controlPlane returns the selectors of the nodes of the control plane. Kubernetes has had two
// names for their role.
func (s *Split) controlPlane() []string {
	if s.ControlPlane != "" {
		return []string{s.ControlPlane}
	}
	return []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
}

// replicasFor returns the replicas of every Deployment.
func (s *Split) replicasFor(nodes int) int32 {
	switch {
	case s.Replicas > 0:
		return s.Replicas
	case nodes > 1:
		return 3
	}
	return 1
}

// elsewhere are the loops of the split layout, which run in Deployments.
type elsewhere struct{}

func (elsewhere) Run(Features)    {}
func (elsewhere) Stop()           {}
func (elsewhere) Err() error      { return nil }
func (elsewhere) OnChange(func()) {}

// component is one Deployment of the split layout.
type component struct {
	// name is one of hub.ComponentNames, and args start it.
	name string
	args []string
	// app is the label of its pods.
	app string
	// image is the field of the spec that names its image.
	image func(operatorv1.ClusterManagerSpec) string
	// gates are those that it gets as flags.
	gates map[string]gate
	// certificate is the Secret that is mounted, and mount the folder.
	certificate, mount string
	// wanted reports whether it runs with these features; nil means always.
	wanted func(Features) bool
}

// folder is where components find what is mounted.
const folder = "/var/run/secrets/hub"

func registrationImage(s operatorv1.ClusterManagerSpec) string { return s.RegistrationImagePullSpec }
func workImage(s operatorv1.ClusterManagerSpec) string         { return s.WorkImagePullSpec }
func addOnImage(s operatorv1.ClusterManagerSpec) string        { return s.AddOnManagerImagePullSpec }

// components are all Deployments of the split layout.
var components = []component{
	{name: "registration-controller", app: "clustermanager-registration-controller", args: []string{"registration"},
		image: registrationImage, gates: registrationGates},
	{name: "registration-webhook", app: hub.RegistrationService, args: []string{"webhook", "registration"},
		image: registrationImage, gates: registrationGates,
		certificate: operatorv1.SecretRegistrationWebhookServingCert, mount: folder + "/serving/registration"},
	{name: "work-webhook", app: hub.WorkService, args: []string{"webhook", "work"}, image: workImage, gates: workGates,
		certificate: operatorv1.SecretWorkWebhookServingCert, mount: folder + "/serving/work"},
	{name: "addon-webhook", app: hub.AddonService, args: []string{"webhook", "addon"}, image: addOnImage,
		certificate: operatorv1.SecretAddOnWebhookServingCert, mount: folder + "/serving/addon"},
	{name: "placement-controller", app: "clustermanager-placement-controller", args: []string{"placement"},
		image: func(s operatorv1.ClusterManagerSpec) string { return s.PlacementImagePullSpec }, gates: placementGates},
	{name: "addon-manager-controller", app: "clustermanager-addon-manager-controller", args: []string{"addon"}, image: addOnImage,
		gates: addOnManagerGates, wanted: func(f Features) bool { return f.AddOnManagement }},
	{name: "work-controller", app: hub.Name + "-work-controller", args: []string{"work"}, image: workImage, gates: workGates,
		wanted: func(f Features) bool {
			return f.ManifestWorkReplicaSet || f.CleanUpCompletedManifestWork || f.ClusterPermission
		}},
}

func (c component) isWanted(f Features) bool { return c.wanted == nil || c.wanted(f) }

// deployment is the name of the component's Deployment.
func (c component) deployment() string { return hub.Name + "-" + c.name }

func (c component) isWebhook() bool { return c.args[0] == "webhook" }

// Component is one Deployment of the split layout, as found.
type Component struct {
	// Name of the Deployment.
	Name string
	// Found is true when it exists, Rolling while its pods are not those that it wants, and
	// Unavailable while it has fewer than it wants.
	Found, Rolling, Unavailable bool
	// Generation of the Deployment.
	Generation int64
	isWebhook  bool
}
