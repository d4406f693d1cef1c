// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	addonv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1beta1"
)

// Kinds that are converted.
const (
	kindClusterManagementAddOn = "ClusterManagementAddOn"
	kindManagedClusterAddOn    = "ManagedClusterAddOn"
)

// The two versions, as objects write them.
var (
	older = addonv1alpha1.GroupVersion.String()
	newer = addonv1beta1.GroupVersion.String()
)

// Convert returns a ClusterManagementAddOn or ManagedClusterAddOn, given as JSON, in
// another version of its group. Of the metadata it changes at most one annotation. It fails
// if raw is not a JSON object, if its kind or one of the versions is unknown, or if a field
// that has to be moved is of the wrong type.
func Convert(raw []byte, toAPIVersion string) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, fmt.Errorf("decoding object to convert: %w", err)
	}
	converted, err := Object(object, toAPIVersion)
	if err != nil {
		return nil, err
	}
	return json.Marshal(converted)
}

// Object is like Convert for a decoded object, with whole numbers as int64 and others as
// float64. The given object is not changed.
func Object(object map[string]any, toAPIVersion string) (map[string]any, error) {
	kind, _ := object["kind"].(string)
	from, _ := object["apiVersion"].(string)
	if kind != kindClusterManagementAddOn && kind != kindManagedClusterAddOn {
		return nil, fmt.Errorf("converting kind %q: only %s and %s are converted",
			kind, kindClusterManagementAddOn, kindManagedClusterAddOn)
	}
	for _, version := range []string{from, toAPIVersion} {
		if version != older && version != newer {
			return nil, fmt.Errorf("converting %s from %q to %q: only %s and %s are converted",
				kind, from, toAPIVersion, older, newer)
		}
	}
	converted := runtime.DeepCopyJSON(object)
	if from == toAPIVersion {
		return converted, nil
	}
	f := &fields{}
	steps[kind][toAPIVersion](f, converted)
	if f.err != nil {
		return nil, fmt.Errorf("converting %s to %s: %w", kind, toAPIVersion, f.err)
	}
	converted["apiVersion"] = toAPIVersion
	return converted, nil
}

// steps holds, by kind and desired version, the function that converts an object of the
// other version in place.
var steps = map[string]map[string]func(*fields, map[string]any){
	kindClusterManagementAddOn: {
		older: clusterManagementAddOnToOlder,
		newer: clusterManagementAddOnToNewer,
	},
	kindManagedClusterAddOn: {
		older: managedClusterAddOnToOlder,
		newer: managedClusterAddOnToNewer,
	},
}
