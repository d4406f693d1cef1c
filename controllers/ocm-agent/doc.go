// SPDX-License-Identifier: Apache-2.0

// Command ocm-agent turns a cluster into a managed cluster. "ocm-agent run" serves the
// Klusterlet it was installed with: it registers at the hub and applies the works that the
// hub sends. "ocm-agent agent" does the same as configured by flags, without a Klusterlet.
//
// Only one process is active at a time (package lock). process.work lists its loops, and
// process.newSession those that run while it has access to a hub. It uses only the dynamic
// client and reflectors: a typed clientset would more than double its memory, and a test of
// dependencies keeps it out.
package main
