// SPDX-License-Identifier: Apache-2.0

// Package memory reads what processes and their containers hold, as the kernel of
// this machine counts it. It works on Linux only.
package memory
