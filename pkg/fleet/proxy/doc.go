// SPDX-License-Identifier: Apache-2.0

// Package proxy leads to the API servers of managed clusters through their hub. A hub with the
// feature gate ClusterProxy serves a path for each cluster; whoever may use it there has a
// kubeconfig with that path and the credentials that they have for the hub. It leads to the Services
// that a cluster exposes, too.
package proxy
