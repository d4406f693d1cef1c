// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
)

// nameless is an add-on without a name.
type nameless struct{}

func (nameless) Options() addonkit.Options { return addonkit.Options{} }

func (nameless) Manifests(context.Context, addonkit.Instance) ([]runtime.Object, error) {
	return nil, nil
}

func TestAnAddOnWithoutANameIsRefused(t *testing.T) {
	require.ErrorContains(t, Run(t.Context(), Config{}, nameless{}), "options of the add-on: name: must be set; use the name of the ClusterManagementAddOn")
}
