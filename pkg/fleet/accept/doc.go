// SPDX-License-Identifier: Apache-2.0

// Package accept lets clusters in that ask to be joined, or denies them, and
// waits for what comes of it.
package accept
