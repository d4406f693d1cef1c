// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// Feature gates of an agent (operator.md 4).
const (
	gateClusterClaim    = "ClusterClaim"
	gateAddonManagement = "AddonManagement"
)

// gate is what is known of a feature gate.
type gate struct{ enabled, served bool }

func registrationGates() map[string]gate {
	return map[string]gate{
		gateClusterClaim: {enabled: true, served: true}, gateAddonManagement: {enabled: true, served: true},
		"ClusterProperty": {}, "V1beta1CSRAPICompatibility": {}, "MultipleHubs": {}, "NetworkPolicies": {},
	}
}

func workGates() map[string]gate {
	return map[string]gate{"ExecutorValidatingCaches": {}, "RawFeedbackJsonString": {}}
}

// requested is what a spec asks of this layout.
type requested struct {
	settings agent.Settings
	// invalid is why the settings cannot be used, empty when they can.
	invalid string
	// unknown are the feature gates that do not exist.
	unknown []string
	// unsupported are the fields and gates that this layout does not carry out.
	unsupported []string
}

// read understands the spec of a Klusterlet whose agent runs in namespace.
func read(k *operatorv1.Klusterlet, namespace string) requested {
	r := requested{settings: agent.Settings{
		ClusterName: k.Spec.ClusterName, AgentName: string(k.UID), Claims: true,
		HealthPeriod: agent.DefaultHealthPeriod, MaxClaims: agent.DefaultMaxClaims,
	}}
	for _, e := range k.Spec.ExternalServerURLs {
		r.settings.ExternalServerURLs = append(r.settings.ExternalServerURLs, agent.ServerURL{URL: e.URL, CABundle: e.CABundle})
	}
	r.readSpec(k.Spec)
	r.refuse(k.Spec.Namespace != "" && k.Spec.Namespace != namespace, "namespace (install the agent there)")
	if c := k.Spec.RegistrationConfiguration; c != nil {
		r.readRegistration(c)
	}
	if c := k.Spec.WorkConfiguration; c != nil {
		r.readGates("workConfiguration", workGates(), c.FeatureGates)
		if grace := c.AppliedManifestWorkEvictionGracePeriod; grace != nil {
			r.settings.EvictionGrace = grace.Duration
		}
	}
	if err := r.settings.Validate(); err != nil {
		r.invalid = err.Error()
	}
	slices.Sort(r.unknown)
	slices.Sort(r.unsupported)
	return r
}

func (r *requested) refuse(asked bool, field string) {
	if asked {
		r.unsupported = append(r.unsupported, field)
	}
}

func (r *requested) readSpec(s operatorv1.KlusterletSpec) {
	mode := s.DeployOption.Mode
	r.refuse(mode == operatorv1.InstallModeHosted || mode == operatorv1.InstallModeSingletonHosted, "deployOption.mode "+string(mode))
	for field, image := range map[string]string{
		"imagePullSpec": s.ImagePullSpec, "registrationImagePullSpec": s.RegistrationImagePullSpec, "workImagePullSpec": s.WorkImagePullSpec,
	} {
		// An image of the field's own repositories means ours.
		r.refuse(image != "" && !strings.HasPrefix(image, "quay.io/open-cluster-management/"), field)
	}
	r.refuse(s.HubAPIServerHostAlias != nil, "hubApiServerHostAlias")
	r.refuse(s.ResourceRequirement != nil && s.ResourceRequirement.Type != operatorv1.ResourceQosClassDefault, "resourceRequirement")
}

func (r *requested) readRegistration(c *operatorv1.RegistrationConfiguration) {
	r.settings.Annotations, _ = agent.KeepAnnotations(c.ClusterAnnotations)
	r.settings.CertificateSeconds = c.ClientCertExpirationSeconds
	if claims := c.ClusterClaimConfiguration; claims != nil {
		r.settings.MaxClaims, r.settings.ReservedSuffixes = int(claims.MaxCustomClusterClaims), claims.ReservedClusterClaimSuffixes
	}
	gates := r.readGates("registrationConfiguration", registrationGates(), c.FeatureGates)
	r.settings.Claims = gates[gateClusterClaim].enabled
	r.refuse(len(c.ClusterLabels) > 0, "registrationConfiguration.clusterLabels")
	r.refuse(c.BootstrapKubeConfigs.Type == operatorv1.BootstrapKubeConfigTypeLocalSecrets, "registrationConfiguration.bootstrapKubeConfigs")
	driver := c.RegistrationDriver.AuthType
	r.refuse(driver != "" && driver != "csr", "registrationConfiguration.registrationDriver "+driver)
	r.refuse(c.AddOnKubeClientRegistrationDriver != nil && c.AddOnKubeClientRegistrationDriver.AuthType == "token",
		"registrationConfiguration.addOnKubeClientRegistrationDriver token")
}

// readGates switches the known gates, and notes those that do not exist and
// those that are switched on though nothing serves them.
func (r *requested) readGates(field string, known map[string]gate, asked []operatorv1.FeatureGate) map[string]gate {
	for _, a := range asked {
		g, ok := known[a.Feature]
		if !ok {
			r.unknown = append(r.unknown, a.Feature)
			continue
		}
		g.enabled = a.Mode == operatorv1.FeatureGateModeTypeEnable
		known[a.Feature] = g
		r.refuse(g.enabled && !g.served, fmt.Sprintf("%s.featureGates %s", field, a.Feature))
	}
	return known
}
