// SPDX-License-Identifier: Apache-2.0

// Command build makes the Kubernetes programs that tests and demo run, from
// their Go modules, for the machine it runs on.
//
//	go -C test/kubernetes run ./build                 all seven programs
//	go -C test/kubernetes run ./build -control-plane  without node programs
//
// It owns one folder a version and platform outside the checkout (below
// os.UserCacheDir, or OCM_KUBERNETES_CACHE), builds only what is missing there,
// and prints one line a program. A program is there completely or not at all,
// and of two builders one waits for the other. Where KUBEBUILDER_ASSETS holds
// fitting programs nothing is built.
//
// It uses the standard library only: it must start on a fresh machine before
// anything was downloaded.
package main
