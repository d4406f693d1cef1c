// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/apitest"
)

// TestACommandMayDieAfterAnyWrite runs every command that changes something, kills it after its first
// write, its second and so on, and runs it again: it ends as one that nobody killed, with the same
// objects. Of the many that hub init and its like send from one loop, every fifth is enough.
func TestACommandMayDieAfterAnyWrite(t *testing.T) {
	deaths := 0
	for path, flags := range lines {
		if first := words(path)[0]; first == "completion" || first == "dev" {
			continue
		}
		t.Run(path, func(t *testing.T) {
			line := withoutWait(t, path, flags)
			whole := newScene(t)
			first := whole.runIn(manifest, line...)
			require.Zero(t, first.code, first.err)
			want := whole.state()
			n := len(whole.hub.Changes()) + len(whole.spoke.Changes())
			for i := 1; i < n; i++ {
				if i > 5 && i%5 != 0 && i != n-1 {
					continue
				}
				s := newScene(t)
				s.killedAfter(i, line)
				again := s.runIn(manifest, line...)
				require.Zero(t, again.code, "killed after %d of %d writes: %s", i, n, again.err)
				require.Equal(t, want, s.state(), "killed after %d of %d writes", i, n)
				deaths++
			}
		})
	}
	require.Greater(t, deaths, 50, "commands that write several objects are among them")
}

// withoutWait returns the line of a command that does not wait: nothing here does what it would wait for.
func withoutWait(t *testing.T, path string, flags []string) []string {
	t.Helper()
	waits := []string{"--wait", "--accept"}
	line := append(words(path), slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return slices.Contains(waits, f) })...)
	for _, c := range commands(t) {
		if c.path == path && c.LocalFlags().Lookup("wait") != nil {
			line = append(line, "--wait=false")
		}
	}
	return line
}

// killedAfter runs the program until it has made n changes on either cluster.
func (s *scene) killedAfter(n int, line []string) {
	s.t.Helper()
	ctx, kill := context.WithCancel(s.t.Context())
	defer kill()
	alive := func() bool {
		n--
		if n < 0 {
			kill()
		}
		return n >= 0
	}
	for _, server := range []*apitest.Server{s.hub, s.spoke} {
		server.WhileAlive(alive)
		defer server.WhileAlive(nil)
	}
	got := s.runUntil(ctx, manifest, line...)
	require.NotZero(s.t, got.code, "it was not killed: %s", got.out)
}

// fleeting matches what differs between two runs that do the same.
var fleeting = regexp.MustCompile(`"(resourceVersion|uid)":"[^"]*"`)

// state returns the objects of both clusters, without what differs between two runs that do the same: a
// join token that nobody got stays until its time is over, and so does the lock of a removal.
func (s *scene) state() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for name, server := range map[string]*apitest.Server{"hub": s.hub, "spoke": s.spoke} {
		for key, u := range server.Objects() {
			text, err := json.Marshal(u)
			require.NoError(s.t, err)
			if u.GetKind() != "Lease" && !strings.HasPrefix(u.GetName(), "join-token-") {
				out[name+" "+key] = s.stable(string(fleeting.ReplaceAll(text, []byte(`"$1":""`))))
			}
		}
	}
	return out
}

// again has, for commands whose second run does not say unchanged, what it says instead: a token is
// another one each time, and what was deleted is not there.
var again = map[string]string{
	"hub token":         "token <id> expires",
	"hub token create":  "token <id> expires",
	"hub token revoke":  "there is no token",
	"hub restore":       "hub restored",
	"addon delete":      "there is no add-on",
	"cluster remove":    "there is no managed cluster",
	"clusterset unbind": "is not bound to",
	"clusterset delete": "there is no cluster set",
	"placement delete":  "there is no placement",
	"work delete":       "there is no work",
}

// TestASecondRunChangesNothing runs every command that changes something twice: the second run changes no
// object, and says so.
func TestASecondRunChangesNothing(t *testing.T) {
	for path, flags := range lines {
		if first := words(path)[0]; first == "completion" || first == "dev" {
			continue
		}
		t.Run(path, func(t *testing.T) {
			s, line := newScene(t), withoutWait(t, path, flags)
			first := s.runIn(manifest, line...)
			require.Zero(t, first.code, first.err)
			before := s.state()
			second := s.runIn(manifest, line...)
			require.Contains(t, second.out+second.err, cmp.Or(again[path], "unchanged"))
			require.Equal(t, before, s.state())
		})
	}
}
