// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hooks are the webhooks of a hub, by what they are asked about.
var hooks = map[string]string{
	"managedclusters":           "managedclustervalidators.admission.cluster.open-cluster-management.io",
	"managedclustersets":        "managedclustersetvalidators.admission.cluster.open-cluster-management.io",
	"managedclustersetbindings": "managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io",
	"placements":                "placementvalidators.admission.cluster.open-cluster-management.io",
	"manifestworks":             "manifestworkvalidators.admission.work.open-cluster-management.io",
	"manifestworkreplicasets":   "manifestworkreplicasetvalidators.admission.work.open-cluster-management.io",
}

// probed answers a write by which the plugin looks whether admission is there, as a
// hub does that works.
func probed(w http.ResponseWriter, r request, u *unstructured.Unstructured) bool {
	if !r.dry || !strings.Contains(u.GetName(), "ocm-probe") {
		return false
	}
	collection, _, _ := strings.Cut(r.collection, "|")
	hook, found := hooks[collection[strings.LastIndex(collection, "/")+1:]]
	if found && (u.GetKind() != "ManagedCluster" || strings.HasPrefix(u.GetName(), "kube-")) {
		refuse(w, http.StatusBadRequest, "BadRequest", `admission webhook "`+hook+`" denied the request: it is a trial`, u.GetName())
		return true
	}
	u.SetAnnotations(map[string]string{"registration.open-cluster-management.io/creator": "admin"})
	answer(w, http.StatusCreated, u.Object)
	return true
}
