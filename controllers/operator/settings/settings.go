// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// Conditions returns the conditions about the gates and the supported fields.
func (r Asked) Conditions() []metav1.Condition {
	gates := metav1.Condition{
		Type: operatorv1.ConditionValidFeatureGates, Status: metav1.ConditionTrue, Reason: operatorv1.ReasonFeatureGatesAllValid,
		Message: "All feature gates are known",
	}
	if len(r.Unknown) > 0 {
		gates.Status, gates.Reason = metav1.ConditionFalse, operatorv1.ReasonInvalidFeatureGatesExisting
		gates.Message = "There are no feature gates with these names: " + strings.Join(r.Unknown, ", ")
	}
	supported := metav1.Condition{
		Type: operatorv1.ConditionSpecSupported, Status: metav1.ConditionTrue, Reason: operatorv1.ReasonAllFieldsSupported,
		Message: "All fields of the spec are in effect",
	}
	if len(r.Unsupported) > 0 {
		supported.Status, supported.Reason = metav1.ConditionFalse, operatorv1.ReasonNotSupported
		supported.Message = "This agent does not support, and leaves out: " + strings.Join(r.Unsupported, ", ")
	}
	return []metav1.Condition{gates, supported}
}

// gateNetworkPolicies is a gate of what installs an agent, which the agent itself does not know.
const gateNetworkPolicies = "NetworkPolicies"

// registrationGates returns the feature gates of the agent, and that one.
func registrationGates() map[string]agent.Gate {
	gates := agent.Gates()
	gates[gateNetworkPolicies] = agent.Gate{Served: true}
	return gates
}

// Asked is what a spec asks of the agent.
type Asked struct {
	Settings agent.Settings
	// RegistrationGates and WorkGates are the gates that the spec changes, as Name=true or
	// Name=false.
	RegistrationGates, WorkGates []string
	// Policies is true when the gate NetworkPolicies is on.
	Policies bool
	// Invalid is why the settings cannot be used, empty when they can.
	Invalid string
	// Unknown lists the feature gates that do not exist.
	Unknown []string
	// Unsupported lists the fields and gates that the agent does not support.
	Unsupported []string
}

// Read reads the spec of a Klusterlet.
func Read(k *operatorv1.Klusterlet) Asked {
	r := Asked{Settings: agent.Settings{
		ClusterName: k.Spec.ClusterName, AgentName: string(k.UID), WorkAgentID: string(k.UID), Claims: true, AddOns: true,
		HealthPeriod: agent.DefaultHealthPeriod, MaxClaims: agent.DefaultMaxClaims,
	}}
	for _, e := range k.Spec.ExternalServerURLs {
		r.Settings.ExternalServerURLs = append(r.Settings.ExternalServerURLs, agent.ServerURL{URL: e.URL, CABundle: e.CABundle})
	}
	if c := k.Spec.RegistrationConfiguration; c != nil {
		r.readRegistration(c)
	}
	if c := k.Spec.WorkConfiguration; c != nil {
		gates := agent.WorkGates()
		r.WorkGates = r.readGates("workConfiguration", gates, c.FeatureGates)
		r.Settings.RawFeedback = gates[agent.GateRawFeedback].Enabled
		if grace := c.AppliedManifestWorkEvictionGracePeriod; grace != nil {
			r.Settings.EvictionGrace = grace.Duration
		}
	}
	if err := r.Settings.Validate(); err != nil && r.Invalid == "" {
		r.Invalid = err.Error()
	}
	if err := check(k.Spec); err != nil && r.Invalid == "" {
		r.Invalid = err.Error()
	}
	slices.Sort(r.Unknown)
	return r
}

// check returns an error for values that the definition admits and no process could use.
func check(s operatorv1.KlusterletSpec) error {
	rates := map[string]int32{}
	if c := s.RegistrationConfiguration; c != nil {
		rates["registrationConfiguration.kubeAPIQPS"], rates["registrationConfiguration.kubeAPIBurst"] = c.KubeAPIQPS, c.KubeAPIBurst
		for _, key := range slices.Sorted(maps.Keys(agent.KeepAnnotations(c.ClusterAnnotations))) {
			if problems := validation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
				return fmt.Errorf("registrationConfiguration.clusterAnnotations %q: %s", key, strings.Join(problems, "; "))
			}
		}
	}
	if c := s.WorkConfiguration; c != nil {
		rates["workConfiguration.kubeAPIQPS"], rates["workConfiguration.kubeAPIBurst"] = c.KubeAPIQPS, c.KubeAPIBurst
		rates["workConfiguration.hubKubeAPIQPS"], rates["workConfiguration.hubKubeAPIBurst"] = c.HubKubeAPIQPS, c.HubKubeAPIBurst
		if i := c.StatusSyncInterval; i != nil && i.Duration <= 0 {
			return fmt.Errorf("workConfiguration.statusSyncInterval=%s: it must be more than 0s", i.Duration)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(rates)) {
		if rates[field] < 0 {
			return fmt.Errorf("%s=%d: it must not be negative", field, rates[field])
		}
	}
	return nil
}

// AddUnsupported adds a field that is asked for and not supported.
func (r *Asked) AddUnsupported(asked bool, field string) {
	if asked {
		r.Unsupported = append(r.Unsupported, field)
	}
}

func (r *Asked) readRegistration(c *operatorv1.RegistrationConfiguration) {
	r.Settings.Annotations = agent.KeepAnnotations(c.ClusterAnnotations)
	r.Settings.CertificateSeconds = c.ClientCertExpirationSeconds
	if claims := c.ClusterClaimConfiguration; claims != nil {
		r.Settings.MaxClaims, r.Settings.ReservedSuffixes = int(claims.MaxCustomClusterClaims), claims.ReservedClusterClaimSuffixes
	}
	gates := registrationGates()
	r.RegistrationGates = slices.DeleteFunc(r.readGates("registrationConfiguration", gates, c.FeatureGates), func(changed string) bool {
		return strings.HasPrefix(changed, gateNetworkPolicies+"=")
	})
	r.Settings.Claims, r.Settings.Properties = gates[agent.GateClusterClaim].Enabled, gates[agent.GateClusterProperty].Enabled
	r.Policies, r.Settings.Proxy = gates[gateNetworkPolicies].Enabled, gates[agent.GateClusterProxy].Enabled
	r.Settings.AddOns = gates[agent.GateAddonManagement].Enabled
	r.Settings.Labels = c.ClusterLabels
	r.readHubs(c.BootstrapKubeConfigs, gates[agent.GateMultipleHubs].Enabled)
	driver := c.RegistrationDriver.AuthType
	r.AddUnsupported(driver != "" && driver != "csr", "registrationConfiguration.registrationDriver "+driver)
	if d := c.AddOnKubeClientRegistrationDriver; d != nil {
		r.Settings.AddOnDriver = addonv1alpha1.DriverType(d.AuthType)
		if d.Token != nil {
			r.Settings.AddOnTokenSeconds = d.Token.ExpirationSeconds
		}
	}
}

// readHubs reads the list of hubs to choose from.
func (r *Asked) readHubs(b operatorv1.BootstrapKubeConfigs, enabled bool) {
	const field = "registrationConfiguration.bootstrapKubeConfigs"
	if b.Type != operatorv1.BootstrapKubeConfigTypeLocalSecrets {
		return
	}
	r.AddUnsupported(!enabled, field+" (enable the feature gate MultipleHubs)")
	switch list := b.LocalSecretsConfig; {
	case !enabled:
	case list == nil || len(list.KubeConfigSecrets) < 2:
		r.Invalid = field + ".localSecretsConfig.kubeConfigSecrets: name at least two secrets"
	default:
		for _, secret := range list.KubeConfigSecrets {
			r.Settings.Hubs = append(r.Settings.Hubs, secret.Name)
		}
		if r.Settings.HubTimeout = time.Duration(list.HubConnectionTimeoutSeconds) * time.Second; r.Settings.HubTimeout == 0 {
			r.Settings.HubTimeout = agent.DefaultHubTimeout
		}
	}
}

// readGates applies the requested gates to the known ones and returns those that it changed. It
// records the gates that do not exist and those that are enabled but not supported.
func (r *Asked) readGates(field string, known map[string]agent.Gate, asked []operatorv1.FeatureGate) (changed []string) {
	for _, a := range asked {
		g, ok := known[a.Feature]
		if !ok {
			r.Unknown = append(r.Unknown, a.Feature)
			continue
		}
		enabled := a.Mode == operatorv1.FeatureGateModeTypeEnable
		if g.Served && enabled != g.Enabled {
			changed = append(changed, fmt.Sprintf("%s=%t", a.Feature, enabled))
		}
		g.Enabled = enabled
		known[a.Feature] = g
		r.AddUnsupported(g.Enabled && !g.Served, fmt.Sprintf("%s.featureGates %s", field, a.Feature))
	}
	return changed
}
