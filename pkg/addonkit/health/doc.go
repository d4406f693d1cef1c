// SPDX-License-Identifier: Apache-2.0

// Package health decides what condition Available of an add-on says where its health
// is not told by its lease: by what the ManifestWorks of its cluster report. It also
// says which values these works must report. It is pure.
//
// Other than in the API's own implementation: an add-on is available only when
// every object that is probed has answered, not when one of them has; the message
// names what is missing.
package health
