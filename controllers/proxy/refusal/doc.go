// SPDX-License-Identifier: Apache-2.0

// Package refusal answers requests that do not reach the API server or a Service of a managed
// cluster. Hub and agent answer alike, so that a client finds the cause without knowing who refused.
package refusal
