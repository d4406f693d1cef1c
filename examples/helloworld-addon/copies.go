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

// everywhere are ConfigMaps that clusters put into each namespace themselves.
var everywhere = []string{"kube-root-ca.crt", "openshift-service-ca.crt"}

// state is what is known of one name.
type state struct {
	namespace, addOn string
	// source is the ConfigMap on the hub, copy that of the cluster; nil for none.
	source, copy *corev1.ConfigMap
	// stays is false when the add-on is being removed, or its instance is gone.
	stays bool
}

// plan is what is to be done about it; at most one of them.
type plan struct{ write, remove *corev1.ConfigMap }

// decide makes the copy what the source is. It is pure. What is being removed copies
// nothing any more, and leaves it to the cleanup to remove.
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
