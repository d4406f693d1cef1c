// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// profiles returns the write that creates the API that the gate needs, if it is missing.
func profiles(s State, f Features) []reconcile.Write {
	if !f.ClusterProfile || s.Profiles.Found {
		return nil
	}
	definition, err := crd.Get(crd.ClusterProfiles)
	if err != nil {
		// Only a broken build has no definition; the condition reports the missing API.
		return nil
	}
	return []reconcile.Write{reconcile.Create{Object: definition, Lenient: true}}
}

// setProfilesCondition sets the condition about ClusterProfiles while the gate is on, and
// removes it otherwise.
func setProfilesCondition(s State, cm *operatorv1.ClusterManager, on bool) {
	c := metav1.Condition{
		Type: operatorv1.ConditionClusterProfilesKept, Status: metav1.ConditionTrue,
		Reason: operatorv1.ReasonClusterProfilesServed, Message: "ClusterProfiles are kept in the namespaces that are bound to sets",
	}
	wanted := multiclusterv1alpha1.GroupVersion.Version
	switch {
	case !on:
		apimeta.RemoveStatusCondition(&cm.Status.Conditions, c.Type)
		return
	case s.Profiles.Served:
	case s.Profiles.Found && len(s.Profiles.Versions) > 0 && !slices.Contains(s.Profiles.Versions, wanted):
		c.Status, c.Reason = metav1.ConditionFalse, operatorv1.ReasonClusterProfilesNotServed
		c.Message = fmt.Sprintf("CustomResourceDefinition %s serves %s and not %s, and is left as it is: no ClusterProfile is kept. "+
			"Install a release of it that serves %[3]s, or delete it so that the hub installs its own",
			crd.ClusterProfiles, strings.Join(s.Profiles.Versions, ", "), wanted)
	default:
		c.Status, c.Reason = metav1.ConditionFalse, operatorv1.ReasonClusterProfilesNotServed
		c.Message = fmt.Sprintf("Waiting for the API %s in version %s to be established; no ClusterProfile is kept until then", crd.ClusterProfiles, wanted)
	}
	setCondition(cm, s.Now, c)
}
