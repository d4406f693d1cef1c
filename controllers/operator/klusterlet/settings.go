// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// registrationGates returns the feature gates of the agent, and one of the operator.
func registrationGates() map[string]agent.Gate {
	gates := agent.Gates()
	gates["NetworkPolicies"] = agent.Gate{}
	return gates
}

// requested is what a spec asks for, as this layout understands it.
type requested struct {
	settings agent.Settings
	// invalid is why the settings cannot be used, empty when they can.
	invalid string
	// unknown lists the feature gates that do not exist.
	unknown []string
	// unsupported lists the fields and gates that this layout does not support.
	unsupported []string
}

// readRequested reads the spec of a Klusterlet whose agent runs in namespace.
func readRequested(k *operatorv1.Klusterlet, namespace string) requested {
	r := requested{settings: agent.Settings{
		ClusterName: k.Spec.ClusterName, AgentName: string(k.UID), WorkAgentID: string(k.UID), Claims: true, AddOns: true,
		HealthPeriod: agent.DefaultHealthPeriod, MaxClaims: agent.DefaultMaxClaims,
	}}
	for _, e := range k.Spec.ExternalServerURLs {
		r.settings.ExternalServerURLs = append(r.settings.ExternalServerURLs, agent.ServerURL{URL: e.URL, CABundle: e.CABundle})
	}
	r.readSpec(k.Spec)
	r.addUnsupported(k.Spec.Namespace != "" && k.Spec.Namespace != namespace, "namespace (install the agent there)")
	if c := k.Spec.RegistrationConfiguration; c != nil {
		r.readRegistration(c)
	}
	if c := k.Spec.WorkConfiguration; c != nil {
		gates := r.readGates("workConfiguration", agent.WorkGates(), c.FeatureGates)
		r.settings.RawFeedback = gates[agent.GateRawFeedback].Enabled
		if grace := c.AppliedManifestWorkEvictionGracePeriod; grace != nil {
			r.settings.EvictionGrace = grace.Duration
		}
	}
	if err := r.settings.Validate(); err != nil && r.invalid == "" {
		r.invalid = err.Error()
	}
	slices.Sort(r.unknown)
	slices.Sort(r.unsupported)
	return r
}

func (r *requested) addUnsupported(asked bool, field string) {
	if asked {
		r.unsupported = append(r.unsupported, field)
	}
}

func (r *requested) readSpec(s operatorv1.KlusterletSpec) {
	mode := s.DeployOption.Mode
	r.addUnsupported(mode == operatorv1.InstallModeHosted || mode == operatorv1.InstallModeSingletonHosted, "deployOption.mode "+string(mode))
	for field, image := range map[string]string{
		"imagePullSpec": s.ImagePullSpec, "registrationImagePullSpec": s.RegistrationImagePullSpec, "workImagePullSpec": s.WorkImagePullSpec,
	} {
		// An image of Open Cluster Management's own repositories stands for this program's.
		r.addUnsupported(image != "" && !strings.HasPrefix(image, "quay.io/open-cluster-management/"), field)
	}
	r.addUnsupported(s.HubAPIServerHostAlias != nil, "hubApiServerHostAlias")
	r.addUnsupported(
		s.ResourceRequirement != nil && s.ResourceRequirement.Type != "" && s.ResourceRequirement.Type != operatorv1.ResourceQosClassDefault,
		"resourceRequirement",
	)
}

func (r *requested) readRegistration(c *operatorv1.RegistrationConfiguration) {
	r.settings.Annotations = agent.KeepAnnotations(c.ClusterAnnotations)
	r.settings.CertificateSeconds = c.ClientCertExpirationSeconds
	if claims := c.ClusterClaimConfiguration; claims != nil {
		r.settings.MaxClaims, r.settings.ReservedSuffixes = int(claims.MaxCustomClusterClaims), claims.ReservedClusterClaimSuffixes
	}
	gates := r.readGates("registrationConfiguration", registrationGates(), c.FeatureGates)
	r.settings.Claims, r.settings.Properties = gates[agent.GateClusterClaim].Enabled, gates[agent.GateClusterProperty].Enabled
	r.settings.AddOns = gates[agent.GateAddonManagement].Enabled
	r.settings.Labels = c.ClusterLabels
	r.readHubs(c.BootstrapKubeConfigs, gates[agent.GateMultipleHubs].Enabled)
	driver := c.RegistrationDriver.AuthType
	r.addUnsupported(driver != "" && driver != "csr", "registrationConfiguration.registrationDriver "+driver)
	if d := c.AddOnKubeClientRegistrationDriver; d != nil {
		r.settings.AddOnDriver = addonv1alpha1.DriverType(d.AuthType)
		if d.Token != nil {
			r.settings.AddOnTokenSeconds = d.Token.ExpirationSeconds
		}
	}
}

// readHubs reads the list of hubs to choose from.
func (r *requested) readHubs(b operatorv1.BootstrapKubeConfigs, enabled bool) {
	const field = "registrationConfiguration.bootstrapKubeConfigs"
	if b.Type != operatorv1.BootstrapKubeConfigTypeLocalSecrets {
		return
	}
	r.addUnsupported(!enabled, field+" (enable the feature gate MultipleHubs)")
	switch list := b.LocalSecretsConfig; {
	case !enabled:
	case list == nil || len(list.KubeConfigSecrets) < 2:
		r.invalid = field + ".localSecretsConfig.kubeConfigSecrets: name at least two secrets"
	default:
		for _, secret := range list.KubeConfigSecrets {
			r.settings.Hubs = append(r.settings.Hubs, secret.Name)
		}
		if r.settings.HubTimeout = time.Duration(list.HubConnectionTimeoutSeconds) * time.Second; r.settings.HubTimeout == 0 {
			r.settings.HubTimeout = agent.DefaultHubTimeout
		}
	}
}

// readGates applies the requested gates to the known ones, and records those that do not
// exist and those that are enabled but not supported.
func (r *requested) readGates(field string, known map[string]agent.Gate, asked []operatorv1.FeatureGate) map[string]agent.Gate {
	for _, a := range asked {
		g, ok := known[a.Feature]
		if !ok {
			r.unknown = append(r.unknown, a.Feature)
			continue
		}
		g.Enabled = a.Mode == operatorv1.FeatureGateModeTypeEnable
		known[a.Feature] = g
		r.addUnsupported(g.Enabled && !g.Served, fmt.Sprintf("%s.featureGates %s", field, a.Feature))
	}
	return known
}
