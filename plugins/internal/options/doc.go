// SPDX-License-Identifier: Apache-2.0

// Package options holds the flags that commands share and how a command gets at
// a cluster: kubectl's connection flags, output, dry run, waiting, targets.
// Flags are spelled as kubectl spells them; spellings of the field's older
// command line are hidden aliases.
//
// It makes no request. The connection flags --cluster, --user, --token and
// --server are left out, because those words mean managed clusters and join
// tokens here.
package options
