// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package node

// machineMemory is unknown here; playgrounds do not run on this system.
func machineMemory() int64 { return 0 }
