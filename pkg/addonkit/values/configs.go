// SPDX-License-Identifier: Apache-2.0

package values

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var deploymentConfigs = addonv1alpha1.GroupVersion.WithResource("addondeploymentconfigs")

// Kind is the entry of addonkit.Options.Configs for an add-on that uses Configs.
var Kind = addonv1alpha1.ConfigGroupResource{Group: deploymentConfigs.Group, Resource: deploymentConfigs.Resource}

// Configs reads the AddOnDeploymentConfigs of an instance, as the hub has resolved them for
// it. An instance whose configuration changes is rendered again, because its status then
// has another hash. The account of the add-on needs permission to get them.
type Configs struct {
	client dynamic.Interface
	known  *known
}

// NewConfigs returns a Configs that reads on the hub, each content once.
func NewConfigs(client dynamic.Interface) Configs {
	return Configs{client: client, known: &known{contents: map[addonv1alpha1.ConfigReferent]content{}}}
}

// Read returns the configurations, the strongest first; they must not be changed. One that
// does not exist, or that the hub has not resolved yet, is an error that names it. So is
// one that appears in the status but was not assigned, because the agent of the cluster can
// write there.
func (c Configs) Read(ctx context.Context, i addonkit.Instance) ([]*addonv1alpha1.AddOnDeploymentConfig, error) {
	var out []*addonv1alpha1.AddOnDeploymentConfig
	for _, ref := range i.AddOn.Status.ConfigReferences {
		if ref.ConfigGroupResource != Kind {
			continue
		}
		desired := addonv1alpha1.ConfigSpecHash{ConfigReferent: ref.ConfigReferent}
		if ref.DesiredConfig != nil {
			desired = *ref.DesiredConfig
		}
		if !addonkit.Given(i, addonv1alpha1.AddOnConfig{ConfigGroupResource: Kind, ConfigReferent: desired.ConfigReferent}) {
			return nil, fmt.Errorf("AddOnDeploymentConfig %s/%s: neither ClusterManagementAddOn %s nor the spec of the instance names it, so it is "+
				"not read; name it there, or wait until the hub has removed it from status.configReferences", desired.Namespace, desired.Name, i.AddOn.Name)
		}
		if desired.SpecHash == "" {
			return nil, fmt.Errorf("AddOnDeploymentConfig %s/%s: the hub has not found it; create it, or name another one", desired.Namespace, desired.Name)
		}
		config, err := c.read(ctx, desired)
		if err != nil {
			return nil, err
		}
		out = append(out, config)
	}
	return out, nil
}

// read returns one configuration. If it is newer than the hash that the hub has resolved,
// it is used, and read again until the hub has resolved it, too.
func (c Configs) read(ctx context.Context, desired addonv1alpha1.ConfigSpecHash) (*addonv1alpha1.AddOnDeploymentConfig, error) {
	if config := c.known.get(desired); config != nil {
		return config, nil
	}
	u, err := c.client.Resource(deploymentConfigs).Namespace(desired.Namespace).Get(ctx, desired.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading AddOnDeploymentConfig %s/%s: %w", desired.Namespace, desired.Name, err)
	}
	config, err := typed.FromUnstructured[addonv1alpha1.AddOnDeploymentConfig](u)
	if err != nil {
		return nil, err
	}
	hash, err := addonkit.SpecHash(u.Object)
	if err == nil && hash == desired.SpecHash {
		c.known.remember(desired, config)
	}
	return config, err
}

// Values is a Func that returns FromSpec of all configurations together.
func (c Configs) Values(ctx context.Context, i addonkit.Instance) (map[string]any, error) {
	configs, err := c.Read(ctx, i)
	if err != nil {
		return nil, err
	}
	return FromSpec(Effective(configs))
}

// InstallNamespace implements addonkit.Placed for a type that embeds Configs: it returns
// the namespace of the strongest configuration, or "", which leaves it to the instance.
func (c Configs) InstallNamespace(ctx context.Context, i addonkit.Instance) (string, error) {
	configs, err := c.Read(ctx, i)
	if err != nil || len(configs) == 0 {
		return "", err
	}
	return *Effective(configs).AgentInstallNamespace, nil
}

// Effective merges configurations, the first one being the strongest. What one leaves open
// is taken from the next: node selector, tolerations and proxy each as a whole, variables
// by name. Of registries and resource requirements the last one that matches counts. The
// namespace is always that of the first, because the API gives each of them one; it is set
// unless there is no configuration.
func Effective(configs []*addonv1alpha1.AddOnDeploymentConfig) addonv1alpha1.AddOnDeploymentConfigSpec {
	out := addonv1alpha1.AddOnDeploymentConfigSpec{NodePlacement: &addonv1alpha1.NodePlacement{}}
	for _, c := range slices.Backward(configs) {
		overlay(&out, c.Spec)
	}
	return out
}

// overlay puts a stronger configuration over others.
func overlay(out *addonv1alpha1.AddOnDeploymentConfigSpec, stronger addonv1alpha1.AddOnDeploymentConfigSpec) {
	own := stronger.DeepCopy()
	for _, v := range own.CustomizedVariables {
		same := func(o addonv1alpha1.CustomizedVariable) bool { return o.Name == v.Name }
		out.CustomizedVariables = append(slices.DeleteFunc(out.CustomizedVariables, same), v)
	}
	if p := own.NodePlacement; p != nil {
		if len(p.NodeSelector) > 0 {
			out.NodePlacement.NodeSelector = p.NodeSelector
		}
		if len(p.Tolerations) > 0 {
			out.NodePlacement.Tolerations = p.Tolerations
		}
	}
	if p := own.ProxyConfig; p.HTTPProxy+p.HTTPSProxy+p.NoProxy != "" || len(p.CABundle) > 0 {
		out.ProxyConfig = p
	}
	out.Registries = append(out.Registries, own.Registries...)
	out.ResourceRequirements = append(out.ResourceRequirements, own.ResourceRequirements...)
	out.AgentInstallNamespace = cmp.Or(own.AgentInstallNamespace, new(addonv1alpha1.DefaultInstallNamespace))
}

// known caches the content of configurations that all instances of an add-on share, by the
// hash that the hub computed: what has the hash is that content, however old it is.
type known struct {
	mu       sync.Mutex
	contents map[addonv1alpha1.ConfigReferent]content
}

type content struct {
	hash   string
	config *addonv1alpha1.AddOnDeploymentConfig
}

// get returns the content with that hash, or nil if it is not cached.
func (k *known) get(at addonv1alpha1.ConfigSpecHash) *addonv1alpha1.AddOnDeploymentConfig {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.contents[at.ConfigReferent]; c.hash == at.SpecHash {
		return c.config
	}
	return nil
}

// remember caches the newest content of an object.
func (k *known) remember(at addonv1alpha1.ConfigSpecHash, config *addonv1alpha1.AddOnDeploymentConfig) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.contents[at.ConfigReferent] = content{at.SpecHash, config}
}
