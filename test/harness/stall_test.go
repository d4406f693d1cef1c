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

func TestOnlyTheTimeOfStallsIsLost(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(ago int) time.Time { return now.Add(-time.Duration(ago) * time.Second) }
	s := &Stalls{last: now, spans: []span{{at(90), at(80)}, {at(60), at(40)}}}
	for _, tc := range []struct{ from, to, want int }{
		{100, 0, 30}, {100, 95, 0}, {85, 0, 25}, {85, 50, 15}, {55, 45, 10}, {70, 65, 0}, {30, 0, 0},
	} {
		require.Equal(t, time.Duration(tc.want)*time.Second, s.Lost(at(tc.from), at(tc.to)), "from %d s to %d s ago", tc.from, tc.to)
	}
}
