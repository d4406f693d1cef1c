// SPDX-License-Identifier: Apache-2.0

// Package clusterset maintains the sets default and global, and reports on every set whether
// it has members.
//
// It owns spec.clusterSelector of those two sets (gate DefaultClusterSet, on by default),
// unless their annotation autoupdate is "false", and the condition ClusterSetEmpty of all
// sets. Labels, annotations and managed namespaces belong to the users. An invalid selector
// selects nothing, and the condition names the field and how to fix it. While clusters come
// and go, a set's count is rewritten at most every ten seconds, so that a wave of
// registrations is not a wave of writes. Members are counted by package membership.
package clusterset
