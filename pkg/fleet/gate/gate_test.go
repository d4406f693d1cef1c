// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

func TestGatesAreMergedByName(t *testing.T) {
	on, off := operatorv1.FeatureGateModeTypeEnable, operatorv1.FeatureGateModeTypeDisable
	got := Merge([]operatorv1.FeatureGate{{
		Feature: "B",
		Mode:    on,
	}, {
		Feature: "C",
		Mode:    off,
	}}, map[string]bool{"B": false, "A": true})
	require.Empty(t, cmp.Diff([]operatorv1.FeatureGate{{
		Feature: "A",
		Mode:    on,
	}, {
		Feature: "B",
		Mode:    off,
	}, {
		Feature: "C",
		Mode:    off,
	}}, got))
	require.NoError(t, Check(map[string]bool{"ClusterClaim": true}, Agent))
	require.Error(t, Check(map[string]bool{"ClusterClaim": true}, Hub))
}
