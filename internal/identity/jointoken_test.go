// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUsesOfAJoinToken(t *testing.T) {
	by := func(cluster string, credentials ...string) Approval { return Approval{cluster, credentials} }
	for name, tc := range map[string]struct {
		limit    int
		noted    map[string]string
		approved []Approval
		used     int
		admits   bool
	}{
		"nobody used it":                            {limit: 1, admits: true},
		"another cluster has joined":                {limit: 1, noted: map[string]string{"c2": "abc123"}, used: 1},
		"another one was approved and is not noted": {limit: 1, approved: []Approval{by("c2", "JTI=1")}, used: 1},
		"a cluster that is noted and on record": {
			limit:    2,
			noted:    map[string]string{"c2": "abc123"},
			approved: []Approval{by("c2", "JTI=1"), by("c2", "JTI=1")},
			used:     1,
			admits:   true,
		},
		"two, one of them noted": {
			limit:    2,
			noted:    map[string]string{"c2": "abc123"},
			approved: []Approval{by("c3", "JTI=1")},
			used:     2,
		},
		"the cluster itself": {
			limit:  1,
			noted:  map[string]string{"c1": "abc123"},
			used:   1,
			admits: true,
		},
		"the cluster itself, just approved": {
			limit:    1,
			approved: []Approval{by("c1", "JTI=1")},
			used:     1,
			admits:   true,
		},
		"the cluster itself, beyond a lower limit": {
			limit:  1,
			noted:  map[string]string{"c1": "abc123", "c2": "abc123"},
			used:   2,
			admits: true,
		},
		"a longer name is another cluster": {limit: 1, noted: map[string]string{"c10": "abc123"}, used: 1},
		"uses of other tokens": {
			limit:    1,
			noted:    map[string]string{"c2": "abc12", "c3": ""},
			approved: []Approval{by("c4", "JTI=11"), by("c5", ""), by("c6")},
			admits:   true,
		},
		"no limit": {
			noted:  map[string]string{"c2": "abc123", "c3": "abc123"},
			used:   2,
			admits: true,
		},
		"a limit that cannot be read": {limit: Unreadable},
		"such a one, for who is in": {
			limit:  Unreadable,
			noted:  map[string]string{"c1": "abc123"},
			used:   1,
			admits: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			token := JoinToken{ID: "abc123", Credential: "JTI=1", Limit: tc.limit}
			users := token.Users(tc.noted, tc.approved)
			require.Len(t, users, tc.used)
			require.Equal(t, tc.admits, token.Admits("c1", users))
		})
	}
	require.Empty(t, JoinToken{}.Users(map[string]string{"c1": ""}, []Approval{by("c2", "")}), "a token that is not made yet was used by nobody")
}

func TestLimitsOfJoinTokens(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "1": 1, "10000": 10000, "0": Unreadable, "-1": Unreadable, "10001": Unreadable, "1.5": Unreadable, " 2": Unreadable, "many": Unreadable,
	} {
		require.Equal(t, want, ParseUses(text), "%q", text)
	}
	require.NoError(t, CheckUses(1))
	require.ErrorContains(t, CheckUses(0), "1 cluster at least")
	require.Error(t, CheckUses(-1))
	require.ErrorContains(t, CheckUses(10001), "10000 at most")
	for limit, says := range map[int]string{Unreadable: "cannot be read", 1: "for 1 cluster,", 2: "for 2 clusters,"} {
		require.Contains(t, JoinToken{ID: "abc123", Limit: limit}.UsedUp(), says)
	}
}
