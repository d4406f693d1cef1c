// SPDX-License-Identifier: Apache-2.0

package work

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// restarts stops the agent and starts it again, with a change in between, and returns
// what it sends until done returns true and it rests, without watches and lists.
func (s *scene) restarts(stop, between func(), done func() bool) []string {
	s.t.Helper()
	s.rests()
	stop()
	between()
	s.sent.Take()
	s.clock.stop() // without it, objects may show up on a slow machine later than the agent waits for them
	s.start()
	var sent []string
	s.eventually(func() bool {
		sent = append(sent, s.sent.Take()...)
		return slices.Contains(sent, "spoke GET /api/v1/namespaces/"+s.namespace+"/configmaps") && done()
	}, "the agent does not do its work after its start")
	sent = append(sent, s.untilRest(calm)...)
	s.clock.run()
	return slices.DeleteFunc(sent, func(request string) bool {
		return strings.HasPrefix(request, "hub GET") && strings.HasSuffix(request, "/manifestworks") ||
			strings.HasPrefix(request, "spoke GET") && (strings.HasSuffix(request, "/configmaps") || strings.HasSuffix(request, "/appliedmanifestworks")) ||
			request == "spoke GET /api" || request == "spoke GET /apis"
	})
}

// sealed waits until the agent has recorded what it applied.
func (s *scene) sealed(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.eventually(func() bool { return s.applied(name).Annotations[workv1.AnnotationAppliedDigest] != "" }, "%s has no digest", name)
	}
}

func TestAnAgentThatStartsAnewAppliesNothingAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	stop := s.start()
	var names []string
	for i := range 5 {
		name := fmt.Sprintf("w%d", i)
		s.create(name, []string{configMap(name+"-a", "k", "1"), configMap(name+"-b", "k", "1")})
		names = append(names, name)
	}
	for _, name := range names {
		s.ready(name)
	}
	s.sealed(names...)
	require.Empty(t, s.restarts(stop, func() {}, func() bool { return true }), "everything is as it was left")

	s.patch(configMaps, "w1-b", `{"data":{"k":"2"}}`)
	s.eventually(func() bool { return s.data("w1-b", "k") == "1" }, "drift after the start is not repaired")
	s.update("w2", s.manifests(configMap("w2-a", "k", "3")))
	s.eventually(func() bool { return s.data("w2-a", "k") == "3" && s.data("w2-b", "k") == "-" }, "a change after the start is not carried out")
}

func TestOnlyWhatChangedWhileTheAgentWasAwayIsLookedAt(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	stop := s.start()
	for _, name := range []string{"same", "drifted", "foreign", "edited"} {
		s.create(name, []string{configMap(name, "k", "1")})
		s.ready(name)
	}
	s.sealed("same", "drifted", "foreign", "edited")
	sent := s.restarts(stop, func() {
		s.patch(configMaps, "drifted", `{"data":{"k":"2"}}`)
		s.patch(configMaps, "foreign", `{"data":{"other":"2"}}`)
		s.update("edited", s.manifests(configMap("edited", "k", "3")))
	}, func() bool { return s.data("drifted", "k") == "1" && s.data("edited", "k") == "3" })
	require.Equal(t, "2", s.data("foreign", "other"), "what others add is theirs")
	text := strings.Join(sent, "\n")
	require.Contains(t, text, "/configmaps/drifted")
	require.Contains(t, text, "/configmaps/edited")
	require.NotContains(t, text, "same")
	require.NotContains(t, text, "foreign")
}
