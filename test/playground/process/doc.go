// SPDX-License-Identifier: Apache-2.0

// Package process starts programs in the background and makes sure that they
// can be ended later: by the starter, by another run of it, or after a crash.
//
// Every program gets a process group of its own, a log file, and a pid file
// that names the process by number and by the moment it started. End and EndAll
// kill a group only if both still fit, so a number that the system gave to
// somebody else meanwhile is never touched. All pid files of one playground lie
// below one folder; whoever has that folder can end everything in it.
//
// A Reaper is a child that waits on a pipe. When the owner goes away, however
// that happened, the pipe closes and the reaper ends everything below the
// folders it was given. Tests use one; the demo does not, because it must
// outlive its command.
//
// It runs on Linux and darwin; elsewhere it compiles and every start fails with
// ErrUnsupported. It does not restart anything and knows nothing of Kubernetes.
package process
