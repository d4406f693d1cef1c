// SPDX-License-Identifier: Apache-2.0

// Package image reads references of container images.
package image

import (
	"cmp"
	"fmt"
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

// Check returns an error for a field that asks for what seems to be a mirror of a program of Open
// Cluster Management: an image with the name of one of its own in another registry. That program
// does not know the arguments of ours, so it is never started with them.
func Check(field, reference string) error {
	repository, _ := Split(reference)
	if slices.Contains(defaults, repository) {
		return nil
	}
	for _, program := range defaults {
		if name := nameOf(program); name == nameOf(repository) {
			return fmt.Errorf("spec.%s=%q seems to be a mirror of the image %s of Open Cluster Management, which cannot run this release: "+
				"remove the field, or name a mirror of the image of this release", field, reference, name)
		}
	}
	return nil
}

// nameOf returns the last part of a repository.
func nameOf(repository string) string {
	return repository[strings.LastIndexByte(repository, '/')+1:]
}
