// SPDX-License-Identifier: Apache-2.0

// Package klusterlet serves, in the agent's own process, the Klusterlet that
// the process was installed with (compact layout).
//
// It reads the Klusterlet, the definitions it installs, the agent's three
// secrets, and where registration and work stand. It applies the definitions
// of appliedmanifestworks and clusterclaims, never over those of a newer
// version, and the namespace of add-ons, which it puts back when somebody deletes it;
// it hands the settings of the spec to the registration; it writes
// the Klusterlet's conditions. Whether the kept access and the bootstrap
// kubeconfig are good for what an agent has to do is asked of the hub itself,
// by SelfSubjectAccessReviews, when they change. Later on it is the session's own
// work on the hub that tells whether the hub is there (agent.Contact).
//
// The name of the cluster is that of the agent's certificate, once there is one: a
// spec that asks for another is told so. A further Klusterlet is told that nobody
// serves it.
//
// When the Klusterlet is deleted it stops everything that talks to the hub and
// removes the agent by pkg/fleet/teardown.
//
// It creates no Deployment and no rights: those are applied by who installs
// the agent (config/agent). What the spec asks for and this layout does not do
// stands in the condition SpecSupported; the rest of the spec is carried out.
package klusterlet
