// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
)

func TestADeploymentThatAsksForNoPodIsNotRolledOut(t *testing.T) {
	none := int32(0)
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &none}}
	ok, text := RolledOut(d)
	require.False(t, ok)
	require.Equal(t, "0/1 ready", text)

	d.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	ok, text = RolledOut(d)
	require.False(t, ok, "its pod is ending")
	require.Equal(t, "0/1 ready", text)
}
