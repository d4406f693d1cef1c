// SPDX-License-Identifier: Apache-2.0

// Package placement lists, creates, explains and deletes placements.
package placement
