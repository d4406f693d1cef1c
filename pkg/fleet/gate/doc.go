// SPDX-License-Identifier: Apache-2.0

// Package gate has the feature gates of hub and agent.
package gate
