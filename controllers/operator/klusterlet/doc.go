// SPDX-License-Identifier: Apache-2.0

// Package klusterlet serves, in the agent's own process, the Klusterlet that
// the process was installed with (compact layout).
//
// It reads the Klusterlet, the definitions it installs, the secrets in its namespace, and the
// state of registration and work. It applies the definitions of appliedmanifestworks and
// clusterclaims, never over those of a newer version, and the namespace of add-ons, which it
// restores after a deletion; the NetworkPolicies of its pod, while the gate of that name is on;
// and copies of an image pull secret in the namespaces of add-ons. It passes the settings of the
// spec to the registration, and writes the Klusterlet's conditions. When the hub kubeconfig or the bootstrap kubeconfig
// changes, it asks the hub by SelfSubjectAccessReviews whether they grant an agent the rights
// it needs. From then on, the requests of the session itself show whether the hub is
// reachable (agent.Contact).
//
// Once the agent has a certificate, the cluster name is the one in the certificate; a spec
// that asks for another name gets a condition about it. Any further Klusterlet gets a
// condition that it is not served.
//
// When the Klusterlet is deleted, it stops everything that talks to the hub and removes the
// agent with pkg/fleet/teardown.
//
// It creates no Deployment and no RBAC objects: the installer of the agent applies those
// (config/agent). The condition SpecSupported lists what the spec asks for and this layout
// does not support; the rest of the spec takes effect.
package klusterlet
