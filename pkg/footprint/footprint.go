// SPDX-License-Identifier: Apache-2.0

package footprint

import "runtime/debug"

// Release collects the heap, and gives back to the system what the heap no longer
// needs and all pages of the program that can be read from its file again. It takes
// some tens of milliseconds: call it when a process comes to rest, not often. What
// the system does not allow is left as it is.
func Release() {
	debug.FreeOSMemory()
	releaseProgram()
}
