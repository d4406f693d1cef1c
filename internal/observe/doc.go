// SPDX-License-Identifier: Apache-2.0

// Package observe exposes the state of a process: liveness, readiness and metrics on one
// HTTPS port (8443), the same for ocm-hub and ocm-agent.
//
// /healthz and /readyz answer everyone, because kubelets do not authenticate. /metrics
// requires a bearer token that the process's own cluster recognizes (TokenReview) and
// allows to get the path /metrics (SubjectAccessReview); the answer is cached for a few
// seconds.
//
// It is built on the dynamic client, without a typed clientset, so that the agent stays
// small. It writes nothing but those two reviews. Metrics beyond those of Go, the
// process, the client and the queues are defined by the owners of the values, which
// register them in the Registry.
package observe
