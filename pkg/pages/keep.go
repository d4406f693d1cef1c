// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// Every is how often Keep gives pages back. What an agent at rest runs through in
// that time, some 5 MiB, comes back from the page cache within a millisecond; after
// a minute it would be twice as much. Most is to be had soon after the start.
const Every = 20 * time.Second

// Keep gives back, again and again until ctx ends, the memory that only the start,
// or a burst of work, needed. It returns nil.
func Keep(ctx context.Context, c clock.Clock, log logr.Logger) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.After(Every):
		}
		if _, err := Release(); err != nil {
			log.V(1).Info("Pages of the program stay in memory", "error", err.Error())
		}
	}
}
