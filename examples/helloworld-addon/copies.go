// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labelSynced marks copies; its value is the name of the add-on.
const labelSynced = "synced-from-hub"

// everywhere are ConfigMaps that clusters create in each namespace themselves.
var everywhere = []string{"kube-root-ca.crt", "openshift-service-ca.crt"}

// state is what is known of one ConfigMap name.
type state struct {
	namespace, addOn string
	// source is the ConfigMap on the hub, copy the one on the cluster; nil if there is
	// none.
	source, copy *corev1.ConfigMap
	// stays is false when the add-on is being removed, or its instance is gone.
	stays bool
}

// plan is what to do; at most one of the two is set.
type plan struct{ write, remove *corev1.ConfigMap }

// decide makes the copy equal to the source. It is pure. An add-on that is being removed
// copies nothing any more, and leaves the removal to the cleanup.
func decide(s state) plan {
	switch {
	case !s.stays:
		return plan{}
	case s.source == nil || slices.Contains(everywhere, s.source.Name) || s.source.Labels[labelSynced] != "":
		return plan{remove: s.copy}
	}
	wanted := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.source.Name, Labels: map[string]string{labelSynced: s.addOn}},
	}
	if s.copy != nil {
		wanted.ObjectMeta = *s.copy.ObjectMeta.DeepCopy()
		if maps.Equal(s.copy.Data, s.source.Data) && reflect.DeepEqual(s.copy.BinaryData, s.source.BinaryData) {
			return plan{}
		}
	}
	wanted.Data, wanted.BinaryData = s.source.Data, s.source.BinaryData
	return plan{write: wanted}
}
