// SPDX-License-Identifier: Apache-2.0

// Command build makes the programs of Kubernetes, and Helm, that tests and demo run, from
// their Go modules, for the machine it runs on.
//
//	go -C test/kubernetes run ./build                 all of them
//	go -C test/kubernetes run ./build -control-plane  without node programs
//	go -C test/kubernetes run ./build -release DIR    and compress the control plane, for playgrounds to download
//
// It owns one folder for each version and platform outside the checkout (below
// os.UserCacheDir, or OCM_KUBERNETES_CACHE), builds only what is missing there, and
// prints one line for each program. A program is there completely or not at all, and of
// two builders one waits for the other. If KUBEBUILDER_ASSETS holds matching programs,
// nothing is built.
//
// It uses the standard library only: it must start on a fresh machine before anything is
// downloaded.
package main
