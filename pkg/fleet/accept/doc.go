// SPDX-License-Identifier: Apache-2.0

// Package accept accepts or denies clusters that ask to join, and waits for the outcome.
package accept
