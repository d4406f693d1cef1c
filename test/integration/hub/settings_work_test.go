// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// testWorkAdmission expects a hub that was started with --manifestLimit=1000.
func (s *scene) testWorkAdmission(t *testing.T) {
	const ns = "work-admission"
	_, err := s.kube.CoreV1().Namespaces().Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	require.NoError(t, err)
	one := fmt.Sprintf(aMap, "one")
	err = raw(s.dyn, works, rawWork(ns, "large", strings.TrimSuffix(one, "}")+`,"data":{"a":"`+strings.Repeat("x", 1000)+`"}}`, ""))
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	require.ErrorContains(t, err, "bytes which exceeds the 1000 limit")

	without := s.user(t, "works-without", editWorks)
	settled(t, func() error { return raw(without, works, rawWork(ns, "before", one, "")) })
	s.manage(t, `{"spec":{"workConfiguration":{"featureGates":[{"feature":"NilExecutorValidating","mode":"Enable"}]}}}`)
	n := 0
	require.True(t, eventually(func() bool {
		n++
		err = raw(without, works, rawWork(ns, fmt.Sprint("early-", n), one, ""))
		return err != nil && !apierrors.IsInternalError(err)
	}), "the gate has no effect")
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	require.ErrorContains(t, err, "cannot manipulate the Manifestwork with executor /klusterlet-work-sa in namespace "+ns)
	require.True(t, apierrors.IsBadRequest(change(without, ns, "before", `{"spec":{"deleteOption":{"propagationPolicy":"Orphan"}}}`)))
	require.NoError(t, change(without, ns, "before", `{"metadata":{"annotations":{"a":"b"}}}`), "what the agent does is left alone")
	with := s.user(t, "works-with", editWorks, actAs(":klusterlet-work-sa"))
	settled(t, func() error { return raw(with, works, rawWork(ns, "allowed", one, "")) })
	robot := s.user(t, "works-robot", editWorks, actAs("apps:robot"))
	settled(t, func() error { return raw(robot, works, rawWork(ns, "robots", one, runBy("apps/robot"))) })
	s.manage(t, `{"spec":{"workConfiguration":{"featureGates":null}}}`)
	settled(t, func() error { return raw(without, works, rawWork(ns, "after", one, "")) })
}
