// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	"github.com/kubectl-ocm/kubectl-ocm/internal/image"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// Ports that the API fills in.
const usualHealthPort, usualMetricsPort = 8000, 8080

// Why fields are not in effect.
const (
	oneServer   = "one process serves all webhooks, at port 9443 behind Services: only the split layout has a Deployment for each"
	ofInstaller = "the compact layout is one Deployment, which belongs to whoever installs it: set it there, or use the split layout"
	ofPods      = "the compact layout is one Deployment, which its installer changes: repeat kubectl ocm hub init, or use the split layout"
)

// setSupported sets the condition about fields of the spec that are not in effect while there are
// any, and removes it otherwise.
func setSupported(s State, cm *operatorv1.ClusterManager) {
	list := s.unsupported()
	if len(list) == 0 {
		apimeta.RemoveStatusCondition(&cm.Status.Conditions, operatorv1.ConditionSpecSupported)
		return
	}
	slices.Sort(list)
	setCondition(cm, s.Now, metav1.Condition{
		Type: operatorv1.ConditionSpecSupported, Status: metav1.ConditionFalse, Reason: operatorv1.ReasonNotSupported,
		Message: "The hub leaves out: " + strings.Join(list, "; "),
	})
}

// omission is a field of the spec that is not in effect if asked is true, and why.
type omission struct {
	asked      bool
	field, why string
}

// unsupported returns the fields that the spec sets and that are not in effect, with the reasons.
func (s State) unsupported() []string {
	var all []omission
	for field, b := range bindingsOf(s.ClusterManager.Spec) {
		all = append(all, s.omittedBinding(field, b)...)
	}
	var out []string
	for _, o := range append(all, s.omittedFields()...) {
		if o.asked {
			out = append(out, o.field+" ("+o.why+")")
		}
	}
	return out
}

// omittedBinding returns what is left out of where a webhook is asked to listen.
func (s State) omittedBinding(field string, b asked) []omission {
	switch {
	case strings.HasPrefix(field, "deployOption.hosted") != s.Hosted:
		return []omission{{!b.isUsual(), field, "it is that of another deployOption.mode"}}
	case s.Components == nil:
		return []omission{{!b.isUsual(), field, oneServer}}
	}
	return []omission{
		{!isUsual(b.MetricsPort, usualMetricsPort), field + ".metricsPort", "health and metrics are one server"},
		{!b.HostNetwork && !isUsual(b.HealthProbePort, usualHealthPort), field + ".healthProbePort", "without hostNetwork it is 8443"},
		{b.HostNetwork && b.HealthProbePort != nil && *b.HealthProbePort < 1, field + ".healthProbePort", "health is always served, at port 8443"},
	}
}

// omittedFields returns what is left out of the other fields.
func (s State) omittedFields() []omission {
	spec := s.ClusterManager.Spec
	out := []omission{
		{spec.DeployOption.Hosted != nil && !s.Hosted, "deployOption.hosted", "deployOption.mode is not Hosted"},
		{isAsked(spec.ServerConfiguration), "serverConfiguration", "there is no server of other transports"},
	}
	if features, _, _ := parseFeatures(spec); features.ClusterProxy {
		field := "registrationConfiguration.featureGates " + gateClusterProxy
		if s.Unproven != nil && !s.Hosted {
			out = append(out, omission{true, field, s.Unproven.Error()})
		}
		out = append(out, omission{s.Hosted, field, "a hub of another cluster has no Service that its API server reaches"})
	}
	if s.Components != nil {
		return out
	}
	why := ofInstaller
	if s.Hosted {
		why = "one process runs all parts, from the image of registration"
	}
	for field, given := range map[string]string{
		"workImagePullSpec": spec.WorkImagePullSpec, "placementImagePullSpec": spec.PlacementImagePullSpec,
		"addOnManagerImagePullSpec": spec.AddOnManagerImagePullSpec,
	} {
		out = append(out, omission{isOther(given) && given != spec.RegistrationImagePullSpec, field, why})
	}
	if s.Hosted {
		return out
	}
	for _, field := range s.Pod.Lacks(spec.NodePlacement, "", spec.ResourceRequirement) {
		out = append(out, omission{true, field, ofPods})
	}
	return append(out, omission{isOther(spec.RegistrationImagePullSpec), "registrationImagePullSpec", why})
}

// isOther reports whether a field names another image than that of this project.
func isOther(field string) bool { return image.Chosen(field, "") != "" }

func isAsked(c *operatorv1.ServerConfiguration) bool {
	return c != nil && (c.ImagePullSpec != "" || len(c.EndpointsExposure) > 0)
}

// asked is where a webhook is asked to listen.
type asked struct{ operatorv1.BindConfiguration }

func (b asked) isUsual() bool {
	return isUsual(b.Port, webhook.Port) && isUsual(b.HealthProbePort, usualHealthPort) && isUsual(b.MetricsPort, usualMetricsPort) && !b.HostNetwork
}

func isUsual(port *int32, usual int32) bool { return port == nil || *port == usual }

// bindingsOf returns where the webhooks are asked to listen, by field.
func bindingsOf(spec operatorv1.ClusterManagerSpec) map[string]asked {
	out := map[string]asked{}
	if d := spec.DeployOption.Default; d != nil {
		for name, c := range map[string]operatorv1.DefaultWebhookConfiguration{
			"registration": d.RegistrationWebhookConfiguration, "work": d.WorkWebhookConfiguration, "addon": d.AddonWebhookConfiguration,
		} {
			out["deployOption.default."+name+"WebhookConfiguration.bindConfiguration"] = asked{c.BindConfiguration}
		}
	}
	if h := spec.DeployOption.Hosted; h != nil {
		for name, c := range map[string]operatorv1.HostedWebhookConfiguration{
			"registration": h.RegistrationWebhookConfiguration, "work": h.WorkWebhookConfiguration,
		} {
			out["deployOption.hosted."+name+"WebhookConfiguration.bindConfiguration"] = asked{c.BindConfiguration}
		}
	}
	return out
}
