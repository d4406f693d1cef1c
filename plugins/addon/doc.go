// SPDX-License-Identifier: Apache-2.0

// Package addon is the command "addon": which add-ons the hub has and how they are
// on each cluster, on which clusters they are, and add-ons that are made of a folder
// with manifests. What is done is decided in pkg/fleet; a template is judged by
// rendering it as the hub does.
package addon
