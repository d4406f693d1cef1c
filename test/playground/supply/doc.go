// SPDX-License-Identifier: Apache-2.0

// Package supply finds the programs that playgrounds run: those of Kubernetes, and those of
// this project. It looks into folders, and downloads what of Kubernetes is not there if it is
// asked to.
package supply
