// SPDX-License-Identifier: Apache-2.0

// Package observe lets people and monitoring see into a process: liveness,
// readiness and metrics on one HTTPS port (8443), the same for ocm-hub and
// ocm-agent.
//
// /healthz and /readyz answer anybody, because kubelets do not authenticate.
// /metrics answers only who presents a bearer token that the process's own
// cluster recognizes (TokenReview) and allows to get the path /metrics
// (SubjectAccessReview); the answer is remembered for a few seconds.
//
// It is built on the dynamic client, without a typed clientset, so that the agent
// stays small. It writes nothing but those two reviews. Which metrics exist besides those of Go, the process, the
// client and the queues is decided by the owners of the values: they register
// them in the Registry.
package observe
