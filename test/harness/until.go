// SPDX-License-Identifier: Apache-2.0

package harness

import "time"

// The pauses of Until: short at first, while the result may come any moment, and later
// long enough that polling does not slow down what it waits for.
const (
	firstPause = 10 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// Until polls ok until it returns true or the limit is over, and returns its last answer.
// It calls ok once more when the limit is over, and always in the goroutine of the
// caller, so that ok may end the test.
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
