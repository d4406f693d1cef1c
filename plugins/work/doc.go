// SPDX-License-Identifier: Apache-2.0

// Package work is the command "work": sending objects to managed clusters,
// listing what was sent, taking it back. Files are read here; they are judged,
// and works are written, by pkg/fleet.
package work
