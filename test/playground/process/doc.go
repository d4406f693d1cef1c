// SPDX-License-Identifier: Apache-2.0

// Package process starts programs in the background and makes sure that they
// can be ended later: by the starter, by another run of it, or after a crash.
//
// Every program gets a process group of its own, a log file, and a pid file that
// identifies the process by PID and start time. End and EndAll kill a group only if both
// still match, so that a PID that the system has reused is never touched. All pid files
// of one playground are below one folder, which is all that is needed to end everything
// in it.
//
// A Reaper is a child that waits on a pipe. When the owner ends for any reason, the pipe
// closes and the reaper ends everything below the folders it was given. Tests use one;
// the demo and dev up do not, because what they start outlives their commands.
//
// It runs on Linux and darwin; elsewhere it compiles and every start fails with
// ErrUnsupported. It does not restart anything and knows nothing about Kubernetes.
package process
