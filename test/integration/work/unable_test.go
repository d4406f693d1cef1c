// SPDX-License-Identifier: Apache-2.0

package work

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhoMayWriteNothingHoldsNobodyBack(t *testing.T) {
	s := newScene(t)
	stop := s.start()
	s.create("a-denied", []string{configMap("one", "a", "theirs")}, robot(s))
	s.settled("a-denied", "Applied", metav1.ConditionFalse)
	const invalid = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two","namespace":"NS"},"data":{"not/valid":"x"}}`
	s.create("a-invalid", []string{invalid})
	s.settled("a-invalid", "Applied", metav1.ConditionFalse)
	s.create("b-able", []string{configMap("one", "a", "1"), configMap("two", "a", "1")})
	s.ready("b-able")
	s.update("b-able", s.manifests(configMap("one", "a", "2"), configMap("two", "a", "2")))
	s.ready("b-able")
	require.Equal(t, []string{"2", "2"}, []string{s.data("one", "a"), s.data("two", "a")})
	stop()
	s.start()
	s.update("b-able", s.manifests(configMap("one", "a", "3"), configMap("two", "a", "3")))
	s.ready("b-able")
	require.Equal(t, "3", s.data("one", "a"), "nor does it after a restart of the agent")

	// The oldest work with the right to write decides; what it has written stays its own
	// when its rights are removed.
	grant(s, `[{"apiGroups":[""],"resources":["configmaps"],"verbs":`+owning+`}]`)
	s.settled("a-denied", "Applied", metav1.ConditionTrue)
	s.settled("b-able", "Applied", metav1.ConditionFalse)
	// The younger work may have been about to undo the older one's first write.
	s.eventually(func() bool { return s.data("one", "a") == "theirs" }, "the object is not the older work's")
	revoke(s)
	s.settled("a-denied", "Applied", metav1.ConditionFalse)
	s.update("b-able", s.manifests(configMap("one", "a", "4"), configMap("two", "a", "4")))
	s.settled("b-able", "Applied", metav1.ConditionFalse)
	require.Equal(t, "theirs", s.data("one", "a"))
}
