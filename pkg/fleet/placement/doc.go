// SPDX-License-Identifier: Apache-2.0

// Package placement lists, makes, explains and deletes placements.
package placement
