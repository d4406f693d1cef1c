// SPDX-License-Identifier: Apache-2.0

// Package join is the command "join": it makes a cluster a managed cluster. It reads
// flags and files; pkg/fleet/join does the checks, the installation and the waiting.
// The token comes from a file, from standard input or from the hub's context; a flag
// with the token itself exists only because clusteradm has it.
package join
