// SPDX-License-Identifier: Apache-2.0

// Command ocm-agent turns a cluster into a managed cluster. "ocm-agent run" serves the
// Klusterlet it was installed with: it registers at the hub and applies the works that the
// hub sends. "ocm-agent agent" does the same as configured by flags, without a Klusterlet;
// "ocm-agent registration" and "ocm-agent work" are its two halves as processes with rights of
// their own. With --spoke-kubeconfig, all but run manage another cluster than the one they run on.
//
// The list commands says what each of them runs. Only one process of each is active at a time
// (package lock). process.register and process.workMounted start what runs meanwhile, and
// process.newSession what runs while there is access to a hub. It uses only the dynamic
// client and reflectors: a typed clientset would more than double its memory, and a test of
// dependencies keeps it out.
package main
