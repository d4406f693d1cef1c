// SPDX-License-Identifier: Apache-2.0

// Package gate defines the feature gates of hub and agent.
package gate
