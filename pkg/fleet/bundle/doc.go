// SPDX-License-Identifier: Apache-2.0

// Package bundle writes what support needs to know of a hub or a managed cluster into one archive:
// the objects of Open Cluster Management, what runs them, events, and what a check has found. What
// may be secret never gets into it: it keeps of each object what is known to be harmless, and
// replaces values, manifests, annotations and everything that looks like a credential.
package bundle
