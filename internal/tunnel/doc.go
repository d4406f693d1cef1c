// SPDX-License-Identifier: Apache-2.0

// Package tunnel carries byte streams over one connection that the far side has dialled: the hub
// opens streams through it, and the agent serves them. It knows nothing of Kubernetes.
//
// A connection starts with one frame from each side, the Hello, in which they agree on a version.
// After it, github.com/hashicorp/yamux multiplexes. The hub trusts nothing that the agent sends:
// frames that an agent never needs, such as a stream that it opens itself, end the tunnel, and
// streams are limited for each tunnel and for each user of it.
//
// The hub pings every 30 seconds. Either side that hears nothing for 60 seconds ends the tunnel.
package tunnel
