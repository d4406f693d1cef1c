// SPDX-License-Identifier: Apache-2.0

// Package dev has the commands "dev up", "dev status" and "dev down": a hub and managed
// clusters on this machine, from plain processes. They read flags and print; test/playground
// does the work. A hidden command "dev keep" runs the helper processes of the clusters.
package dev
