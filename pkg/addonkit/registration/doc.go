// SPDX-License-Identifier: Apache-2.0

// Package registration decides what an add-on gets on the hub for one cluster: who its
// agent is (status.registrations), what it may do, which certificate requests are its own,
// and the ServiceAccount of the token driver. Decisions are pure.
//
// Differences from the API's own implementation:
//   - requests are compared in full: the requester is an agent of this very cluster and the
//     subject has exactly the groups of the registration; of other groups only
//     system:authenticated is accepted, which older agents ask for;
//   - permissions are declared by the add-on and bound for one cluster, under a name of
//     their own in namespaces that clusters share; they are removed with the instance, and
//     with the declaration;
//   - nothing is bound to the group that the agents of all clusters are in;
//   - if the hub may not grant a permission, the condition contains the command that does.
package registration
