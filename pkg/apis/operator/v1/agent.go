// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// IsHosted reports whether the agent runs on another cluster than the one that it manages.
func (k *Klusterlet) IsHosted() bool { return k != nil && k.Spec.DeployOption.Mode.IsHosted() }

// IsHosted reports whether the parts run on another cluster than the one that they are for.
func (m InstallMode) IsHosted() bool {
	return m == InstallModeHosted || m == InstallModeSingletonHosted
}

// Given returns what every container requests, and false where a spec leaves that to the
// recommended values.
func (r *ResourceRequirement) Given() (corev1.ResourceRequirements, bool) {
	switch {
	case r == nil || (r.Type != ResourceQosClassBestEffort && r.Type != ResourceQosClassResourceRequirement):
		return corev1.ResourceRequirements{}, false
	case r.Type == ResourceQosClassBestEffort || r.ResourceRequirements == nil:
		return corev1.ResourceRequirements{}, true
	}
	return *r.ResourceRequirements.DeepCopy(), true
}

// AgentNamespace returns the namespace in which the agent runs, on the cluster of the Klusterlet.
func (k *Klusterlet) AgentNamespace() string {
	if k.IsHosted() {
		return k.Name
	}
	return k.ManagedNamespace()
}

// ManagedNamespace returns the namespace of the agent on the cluster that it manages.
func (k *Klusterlet) ManagedNamespace() string { return cmp.Or(k.Spec.Namespace, NamespaceAgent) }

// AgentDeployment returns the name of the Deployment that runs the agent of a Klusterlet in one
// process.
func AgentDeployment(klusterlet string) string { return klusterlet + "-agent" }

// AgentDeployments returns the names of the Deployments that an operator makes of the agent of a
// Klusterlet: the one of AgentDeployment in the modes Singleton and SingletonHosted, else one that
// registers the cluster and one that applies works.
func AgentDeployments(klusterlet string, mode InstallMode) []string {
	if mode == InstallModeSingleton || mode == InstallModeSingletonHosted {
		return []string{AgentDeployment(klusterlet)}
	}
	return []string{klusterlet + "-registration-agent", klusterlet + "-work-agent"}
}

// CanBeHosted reports whether a Klusterlet or ClusterManager with that name can be served on behalf
// of another cluster: what is made for it is in a namespace with that name.
func CanBeHosted(name string) bool {
	return len(validation.IsDNS1123Label(name)) == 0 && !strings.HasPrefix(name, "kube-") && !slices.Contains([]string{
		metav1.NamespaceDefault, NamespaceOperator, NamespaceHub, NamespaceAgent, NamespaceAgentAddOn,
	}, name)
}
