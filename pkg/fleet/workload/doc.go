// SPDX-License-Identifier: Apache-2.0

// Package workload looks at the Deployments and pods of a hub and of agents:
// whether they have rolled out, what they hang on, and what helps.
package workload
