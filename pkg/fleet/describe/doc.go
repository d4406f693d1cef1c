// SPDX-License-Identifier: Apache-2.0

// Package describe gathers everything that a hub knows of one managed cluster: its state and
// conditions, its sets, the placements that select it, its add-ons and works, and recent events.
package describe
