// SPDX-License-Identifier: Apache-2.0

// Package contract checks what other programs see of this one on the wire: the
// custom resource definitions, the Go types of their objects, and the names of
// conditions, labels, annotations, finalizers and secrets.
//
// It owns the facts in testdata, which were written down from the definitions
// that peers use, and are not generated from this
// code. It reads the definitions in config/crd and the sources in pkg/apis, and
// writes nothing. It needs no cluster; that a real API server takes the
// definitions is shown by the integration tests.
package contract
