// SPDX-License-Identifier: Apache-2.0

// Package proxy is the command "proxy": it reaches the API servers of managed clusters through
// their hub, with the user's own kubectl or any other client. pkg/fleet/proxy makes the
// kubeconfigs and asks the clusters; this package runs kubectl and joins what it says. It also
// leads from a port of this machine to a Service that a cluster exposes.
package proxy
