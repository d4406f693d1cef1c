// SPDX-License-Identifier: Apache-2.0

// Package contract checks what other programs see on the wire: the custom resource
// definitions, the Go types of their objects, and the names of conditions, labels,
// annotations, finalizers and secrets.
//
// It owns the facts in testdata, which were taken from the definitions that peers use and
// are not generated from this code. It reads the definitions in config/crd and the
// sources in pkg/apis, and writes nothing. It needs no cluster; the integration tests
// show that a real API server accepts the definitions.
package contract
