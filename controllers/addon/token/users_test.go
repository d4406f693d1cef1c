// SPDX-License-Identifier: Apache-2.0

package token

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/registration"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func TestUsersByCluster(t *testing.T) {
	u := newUsers()
	a, b := reconcile.Key{Namespace: "prod1", Name: "a"}, reconcile.Key{Namespace: "prod10", Name: "a"}
	u.record(a, true)
	u.record(b, true)
	require.Equal(t, []reconcile.Key{a}, u.of("prod1"))
	u.record(b, false)
	u.record(b, false)
	require.Empty(t, u.of("prod10"))
	require.Len(t, u.by, 1, "nothing is recorded for a cluster without any")
}

// TestObject: the decision sees the part of an instance that the index keeps.
func TestObject(t *testing.T) {
	conditions := []metav1.Condition{{Type: "Available"}}
	o := object(reconcile.Key{Namespace: "c", Name: "a"}, instance.AddOn{
		UID:        "u",
		Version:    "7",
		Generation: 3,
		Token:      true,
		Deleting:   true,
		Conditions: conditions,
	})
	require.True(t, registration.HasToken(o))
	require.NotNil(t, o.DeletionTimestamp)
	require.Equal(t, conditions, o.Status.Conditions)
	require.Equal(t, "7", o.ResourceVersion)
	o = object(reconcile.Key{Namespace: "c", Name: "a"}, instance.AddOn{})
	require.False(t, registration.HasToken(o))
	require.Nil(t, o.DeletionTimestamp)
}
