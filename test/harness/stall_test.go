// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOnlyAStallIsAnExcuse(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := &Stalls{last: now.Add(-time.Minute)}
	s.beat(now.Add(-59 * time.Second))
	s.beat(now.Add(-40 * time.Second)) // it stood still for 19 s
	for since := 39 * time.Second; since >= 0; since -= time.Second {
		s.beat(now.Add(-since))
	}
	for ago, want := range map[time.Duration]bool{
		60 * time.Second: false,
		50 * time.Second: true,
		35 * time.Second: true,
		30 * time.Second: false,
		time.Second:      false,
	} {
		require.Equal(t, want, s.Excuse(now.Add(-ago), 10*time.Second), "%s ago", ago)
	}
}
