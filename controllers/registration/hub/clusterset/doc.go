// SPDX-License-Identifier: Apache-2.0

// Package clusterset keeps the sets default and global as they have to be, and
// tells of every set whether it has members.
//
// It owns spec.clusterSelector of those two sets (gate DefaultClusterSet, on by
// default), unless their annotation autoupdate is "false", and the condition
// ClusterSetEmpty of all sets. Labels, annotations and managed namespaces are
// the users'. A selector that cannot be used selects nothing, and the condition
// names the field and how to mend it. Counts are renewed at most every ten
// seconds a set while clusters come and go, so that a wave of registrations is
// not a wave of writes. Members are counted by package membership.
package clusterset
