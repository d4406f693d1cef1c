// SPDX-License-Identifier: Apache-2.0

package harness

import "time"

// The pauses of Until: short while what is waited for may just have come, and long
// enough later that looking does not slow down what it looks at.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// Until looks until ok says true or the limit is over, and tells which. It looks once
// more when the limit is over, and calls ok in the goroutine of the caller, which may
// therefore end its test.
func Until(limit time.Duration, ok func() bool) bool {
	pause := firstPause
	for end := time.Now().Add(limit); time.Now().Before(end); <-time.After(pause) {
		if ok() {
			return true
		}
		pause = min(pause*5/4, lastPause)
	}
	return ok()
}
