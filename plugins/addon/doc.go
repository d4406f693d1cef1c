// SPDX-License-Identifier: Apache-2.0

// Package addon is the command "addon": it lists add-ons and shows their state on each
// cluster, enables and disables them, and creates add-ons from manifests. pkg/fleet
// does the work; a template is checked by rendering it as the hub does.
package addon
