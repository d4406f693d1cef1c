// SPDX-License-Identifier: Apache-2.0

// Package install compares the ways to install a hub or an agent: the kustomizations in
// config/hub and config/agent and the charts in config/helm contain the objects that the
// plugin applies. It renders the charts without Helm's program; nothing is sent to a
// cluster.
package install

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	renderutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Release is a rendered chart.
type Release struct {
	// Definitions are the objects that Helm creates first, and never changes or deletes.
	Definitions []*unstructured.Unstructured
	// Objects are those of the templates.
	Objects []*unstructured.Unstructured
	// Notes is what Helm prints after an installation.
	Notes string
}

// Kept reports whether Helm leaves an object when the release is uninstalled.
func Kept(o *unstructured.Unstructured) bool {
	return o.GetAnnotations()["helm.sh/resource-policy"] == "keep"
}

// Render renders the chart in a folder as "helm install --namespace" does, with values that
// override those of the chart.
func Render(folder, namespace string, values map[string]any) (Release, error) {
	var out Release
	chart, err := loader.LoadDir(folder)
	if err != nil {
		return out, fmt.Errorf("reading chart %s: %w", folder, err)
	}
	release := common.ReleaseOptions{Name: chart.Name(), Namespace: namespace, Revision: 1, IsInstall: true}
	top, err := renderutil.ToRenderValues(chart, values, release, common.DefaultCapabilities)
	if err != nil {
		return out, err
	}
	texts, err := engine.Render(chart, top)
	if err != nil {
		return out, err
	}
	for _, definition := range chart.CRDObjects() {
		if out.Definitions, err = read(out.Definitions, definition.File.Data); err != nil {
			return out, fmt.Errorf("reading %s: %w", definition.Filename, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		switch base := path.Base(name); {
		case base == "NOTES.txt":
			out.Notes = texts[name]
		case strings.HasPrefix(base, "_"):
		default:
			if out.Objects, err = read(out.Objects, []byte(texts[name])); err != nil {
				return out, fmt.Errorf("reading what %s renders: %w", name, err)
			}
		}
	}
	return out, nil
}

// read appends the objects of a file.
func read(to []*unstructured.Unstructured, file []byte) ([]*unstructured.Unstructured, error) {
	for document := range bytes.SplitSeq(append([]byte("\n"), file...), []byte("\n---\n")) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			to = append(to, o)
		}
	}
	return to, nil
}
