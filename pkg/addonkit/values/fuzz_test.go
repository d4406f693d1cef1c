// SPDX-License-Identifier: Apache-2.0

package values

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// FuzzRegistries: the annotation of a cluster changes where an image comes from, never which
// image it is.
func FuzzRegistries(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", "[]", `{"registries":[{"source":"quay.io/a","mirror":"m/a"}]}`, `{"registries":[{"mirror":"m"}]}`,
		`{"registries":[{"source":"/","mirror":"/"}]}`, `{"registries":[null]}`, `{"registries":[{"source":"quay.io/a/b:v1","mirror":"m"}]}`} {
		f.Add(seed, "quay.io/a/b:v1")
	}
	f.Add(`{"registries":[{"mirror":"m"}]}`, "b@sha256:1")
	f.Fuzz(func(t *testing.T, text, image string) {
		cluster := &clusterv1.ManagedCluster{}
		cluster.Annotations = map[string]string{clusterv1.AnnotationImageRegistries: text}
		registries, err := clusterRegistries(cluster)
		if err != nil {
			require.Less(t, len(err.Error()), 500, "an error is bounded whatever is in the annotation")
			return
		}
		got := Mirrored(image, registries)
		if got == image {
			return
		}
		var fits bool
		for _, r := range registries {
			mirror := strings.Trim(r.Mirror, "/")
			fits = fits || mirror != "" && strings.HasPrefix(got, mirror)
		}
		require.True(t, fits, "%q comes from %q, which is no mirror of %s", image, got, text)
	})
}

// FuzzAnnotation: the annotation of an instance is a JSON object or refused.
func FuzzAnnotation(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", "[]", `{"a":{"b":1}}`, `{"a":1}{`, "1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		addOn.Annotations = map[string]string{addonv1alpha1.AnnotationValues: text}
		got, err := Annotation(t.Context(), addonkit.Instance{AddOn: addOn})
		if err == nil {
			_, err = json.Marshal(got)
			require.NoError(t, err)
		}
	})
}
