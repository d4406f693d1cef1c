// SPDX-License-Identifier: Apache-2.0

package values

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Image returns a Func that gives an image under a name, which may be a dotted path: from
// the registries of the configurations, else from those in the annotation of the cluster,
// else unchanged.
func (c Configs) Image(name, image string) Func {
	return func(ctx context.Context, i addonkit.Instance) (map[string]any, error) {
		configs, err := c.Read(ctx, i)
		if err != nil {
			return nil, err
		}
		registries := Effective(configs).Registries
		if len(registries) == 0 {
			if registries, err = clusterRegistries(i.Cluster); err != nil {
				return nil, err
			}
		}
		return at(name, Mirrored(image, registries)), nil
	}
}

// clusterRegistries returns those that a cluster names.
func clusterRegistries(cluster *clusterv1.ManagedCluster) ([]addonv1alpha1.ImageMirror, error) {
	var list struct {
		Registries []addonv1alpha1.ImageMirror `json:"registries"`
	}
	if cluster == nil || cluster.Annotations[clusterv1.AnnotationImageRegistries] == "" {
		return nil, nil
	}
	text := cluster.Annotations[clusterv1.AnnotationImageRegistries]
	if json.Unmarshal([]byte(text), &list) != nil {
		return nil, fmt.Errorf(`ManagedCluster %s: metadata.annotations[%s]: is not a JSON object with registries; use `+
			`for example {"registries":[{"source":"quay.io/a","mirror":"registry.local/a"}]}`,
			cluster.Name, clusterv1.AnnotationImageRegistries)
	}
	return list.Registries, nil
}

// Mirrored returns where an image comes from: from the last registry that matches it. A
// source matches whole parts of a name, so quay.io/a does not match quay.io/ab. A registry
// without a source matches every image, and keeps only the last part of its name.
func Mirrored(image string, registries []addonv1alpha1.ImageMirror) string {
	for n := len(registries) - 1; n >= 0; n-- {
		source, mirror := strings.Trim(registries[n].Source, "/"), strings.Trim(registries[n].Mirror, "/")
		switch rest, fits := strings.CutPrefix(image, source); {
		case mirror == "":
		case source == "":
			return mirror + "/" + image[strings.LastIndexByte(image, '/')+1:]
		case fits && (rest == "" || strings.IndexByte("/:@", rest[0]) >= 0):
			return mirror + rest
		}
	}
	return image
}
