// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package pages

// Release does nothing on this system.
func Release() (int, error) { return 0, nil }
