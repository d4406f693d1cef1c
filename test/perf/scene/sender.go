// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/test/fakefleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/audit"
)

// The senders of requests in a scene.
const (
	Agent      = "agent"
	Hub        = "hub"
	Person     = "person"
	Kubernetes = "kubernetes"
	Node       = "process-node"
)

// Sender returns who sent a request, by its user agent; that itself for others.
func Sender(r audit.Request) string {
	switch {
	case strings.HasPrefix(r.UserAgent, fakefleet.PersonAgent):
		return Person
	case strings.HasPrefix(r.UserAgent, fakefleet.UserAgent):
		return Agent
	case OfHub(r):
		return Hub
	case strings.HasPrefix(r.UserAgent, "kube-"), strings.HasPrefix(r.User.Username, "system:apiserver"):
		return Kubernetes
	case strings.HasPrefix(r.UserAgent, Node):
		return Node
	default:
		return r.UserAgent
	}
}

// OfHub reports whether a request is one of the hub's.
func OfHub(r audit.Request) bool { return strings.HasPrefix(r.UserAgent, "ocm-hub/") }
