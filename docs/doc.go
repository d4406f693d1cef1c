// SPDX-License-Identifier: Apache-2.0

// Package docs keeps the documentation true: its test compares the package map
// of ARCHITECTURE.md with the tree. It holds no code.
package docs
