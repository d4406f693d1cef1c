// SPDX-License-Identifier: Apache-2.0

package v1

// AgentNamespace returns the namespace of the Klusterlet's agent.
func (k *Klusterlet) AgentNamespace() string {
	if k.Spec.Namespace != "" {
		return k.Spec.Namespace
	}
	return NamespaceAgent
}

// AgentDeployment returns the name of the Deployment that runs the agent of a Klusterlet in one
// process.
func AgentDeployment(klusterlet string) string { return klusterlet + "-agent" }
