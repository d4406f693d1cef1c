// SPDX-License-Identifier: Apache-2.0

// Package image reads references of container images.
package image

import (
	"cmp"
	"slices"
	"strings"
)

// defaults are the repositories that Open Cluster Management's API and charts name by default.
var defaults = []string{
	"quay.io/open-cluster-management/registration", "quay.io/open-cluster-management/work", "quay.io/open-cluster-management/placement",
	"quay.io/open-cluster-management/addon-manager", "quay.io/open-cluster-management/registration-operator",
}

// Split splits a reference into repository and tag; the tag is empty without one, and a digest is
// left out.
func Split(reference string) (repository, tag string) {
	reference, _, _ = strings.Cut(reference, "@")
	if i := strings.LastIndexByte(reference, ':'); i > strings.LastIndexByte(reference, '/') {
		return reference[:i], reference[i+1:]
	}
	return reference, ""
}

// Chosen returns the image that a field of the API asks for. Empty and the default repositories of
// Open Cluster Management, whatever the tag, mean our own; any other image is used as it is.
func Chosen(field, own string) string {
	if repository, _ := Split(field); slices.Contains(defaults, repository) {
		return own
	}
	return cmp.Or(field, own)
}
