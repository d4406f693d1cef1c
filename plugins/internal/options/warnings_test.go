// SPDX-License-Identifier: Apache-2.0

package options

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

func TestWarningsThatNobodyHereCanActOnAreNotShown(t *testing.T) {
	var errs bytes.Buffer
	u := &ui.UI{Streams: ui.Streams{Err: &errs, Getenv: func(string) string { return "" }}}
	w := &warnings{u: u}
	for _, text := range []string{
		"cluster.open-cluster-management.io/v1beta1 ManagedClusterSet is deprecated; use v1beta2",
		"batch/v1beta1 CronJob is deprecated in v1.21+, unavailable in v1.25+",
		`metadata.finalizers: "x": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers`,
		`unrecognized format "int64"`,
		"the cluster is in two sets", "the cluster is in two sets", "",
	} {
		w.HandleWarningHeader(299, "-", text)
	}
	w.HandleWarningHeader(199, "-", "miscellaneous")
	require.Equal(t, "warning: the cluster is in two sets\n", errs.String())
	u.Quiet = true
	w.HandleWarningHeader(299, "-", "another")
	require.NotContains(t, errs.String(), "another")
}
