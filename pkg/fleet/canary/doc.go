// SPDX-License-Identifier: Apache-2.0

// Package canary proves that works reach clusters: it sends each cluster a work with one ConfigMap,
// waits until the agent has applied it and reports its content back, removes it, and waits until it
// is gone. It creates and deletes works that carry its label and a name of its own, and touches
// nothing else. What a killed run has left behind, the next run removes.
package canary
