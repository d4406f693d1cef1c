// SPDX-License-Identifier: Apache-2.0

// Package memory reads how much memory processes and their containers use, as the kernel
// counts it. It works on Linux only.
package memory
