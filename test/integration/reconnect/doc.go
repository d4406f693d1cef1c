// SPDX-License-Identifier: Apache-2.0

// Package reconnect lets a hub be away for hours from the loops with which many agents keep
// in touch with it: leases and watches on a real kube-apiserver, in a time that passes at
// once wherever nobody waits for an answer.
package reconnect
