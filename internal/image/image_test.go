// SPDX-License-Identifier: Apache-2.0

package image

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	for reference, want := range map[string][2]string{
		"":                                     {"", ""},
		"ocm-hub":                              {"ocm-hub", ""},
		"ghcr.io/kubectl-ocm/ocm-hub:v1":       {"ghcr.io/kubectl-ocm/ocm-hub", "v1"},
		"registry:5000/ocm-hub":                {"registry:5000/ocm-hub", ""},
		"registry:5000/ocm-hub:v1@sha256:0":    {"registry:5000/ocm-hub", "v1"},
		"ghcr.io/kubectl-ocm/ocm-hub@sha256:0": {"ghcr.io/kubectl-ocm/ocm-hub", ""},
	} {
		repository, tag := Split(reference)
		require.Equal(t, want, [2]string{repository, tag}, reference)
	}
}

// TestOnlyTheDefaultImagesMeanOurs: a repository beside them, or below one, is somebody's choice.
func TestOnlyTheDefaultImagesMeanOurs(t *testing.T) {
	for field, want := range map[string]string{
		"": "ours",
		"quay.io/open-cluster-management/registration":                    "ours",
		"quay.io/open-cluster-management/work:v1.3.0":                     "ours",
		"quay.io/open-cluster-management/registration-operator@sha256:00": "ours",
		"quay.io/open-cluster-management/own":                             "quay.io/open-cluster-management/own",
		"quay.io/open-cluster-management/work/fork:v1":                    "quay.io/open-cluster-management/work/fork:v1",
		"registry.example.org/registration:v1":                            "registry.example.org/registration:v1",
	} {
		require.Equal(t, want, Chosen(field, "ours"), field)
	}
}

// TestMirrorsOfOtherProgramsAreRefused: they would be started with arguments that they do not know.
func TestMirrorsOfOtherProgramsAreRefused(t *testing.T) {
	for _, mirror := range []string{
		"mirror.example/registration:v1.3.1", "mirror.example/a/b/work", "mirror:5000/placement@sha256:00", "addon-manager", "quay.io/forks/registration-operator:v1",
	} {
		require.ErrorContains(t, Check("workImagePullSpec", mirror), "spec.workImagePullSpec=", mirror)
	}
	for _, ours := range []string{
		"", "quay.io/open-cluster-management/registration:v1.3.1", "quay.io/open-cluster-management/work@sha256:00",
		"mirror.example/ocm-hub:v1", "mirror.example/work/ocm-hub:v1", "mirror.example/my-registration:v1",
	} {
		require.NoError(t, Check("workImagePullSpec", ours), ours)
	}
}
