// SPDX-License-Identifier: Apache-2.0

// Package work is the command "work": it sends objects to managed clusters as works or
// replica sets of works, compares, lists, waits for and deletes them, and traces objects
// of clusters back to their work. Files are read by plugins/internal/options;
// pkg/fleet validates manifests, builds kustomizations and writes works.
package work
