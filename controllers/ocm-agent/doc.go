// SPDX-License-Identifier: Apache-2.0

// Command ocm-agent makes a cluster a managed one. "ocm-agent run" serves the
// Klusterlet it was installed with and everything that follows from it:
// registration at the hub and the works that the hub sends. "ocm-agent agent"
// does registration and works by flags, without a Klusterlet.
//
// One process works at a time (package lock). Its loops, and the loops that run
// while it has access to a hub, are listed in controllers.go. It is built from
// the dynamic client and reflectors: a typed clientset would more than double its
// memory, and a test of dependencies keeps it out.
package main
