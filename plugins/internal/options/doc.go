// SPDX-License-Identifier: Apache-2.0

// Package options has the flags that commands share, and connects a command to a
// cluster: kubectl's connection flags, output, dry run, waiting, targets. Flags are
// spelled as in kubectl; the spellings of clusteradm are hidden aliases.
//
// It makes no request of its own. The connection flags --cluster, --user, --token and
// --server are left out, because here those words mean managed clusters and join tokens.
package options
