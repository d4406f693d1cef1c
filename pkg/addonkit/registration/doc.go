// SPDX-License-Identifier: Apache-2.0

// Package registration decides what an add-on gets on the hub for one cluster: who its
// agent is (status.registrations), what it may do, which of its certificate requests
// are its own, and the ServiceAccount of the token driver. Decisions are pure.
//
// Other than in the API's own implementation:
//   - requests are compared whole: the requester is an agent of this very cluster, the
//     subject is that of the registration to the last group, and of other groups only
//     system:authenticated is let in, which older agents ask for;
//   - rights are declared by the add-on and bound for one cluster, under a name of its
//     own in namespaces that clusters share; they are taken away with the instance, and
//     with the permission;
//   - nothing is bound to the group that the agents of all clusters are in;
//   - where the hub may not give a right, the condition has the command that does.
package registration
