// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// PathValidateAddOn is the path of the rule for the hosting cluster of add-ons. The webhook is called
// only where one is named that was not named before.
const PathValidateAddOn = "/validate-addon-open-cluster-management-io-v1alpha1-managedclusteraddon"

// addOnsResource is the kind whose writers decide what add-ons run on a cluster.
var addOnsResource = schema.GroupResource{Group: addonv1alpha1.GroupName, Resource: "managedclusteraddons"}

// validateAddOn limits the hosting cluster of an add-on to those for which its author may create
// add-ons: the hub sends what the add-on runs there with its own rights, which a user with rights in
// the namespace of one cluster must not gain for another.
func (s *Server) validateAddOn(ctx context.Context, c change[addonv1alpha1.ManagedClusterAddOn]) error {
	const key = addonv1alpha1.AnnotationHostingClusterName
	host := c.now.Annotations[key]
	if c.now.DeletionTimestamp != nil || host == "" || host == c.now.Namespace || host == c.old.Annotations[key] {
		return nil
	}
	ok, err := s.o.Hub.Allowed(ctx, c.UserInfo, authorizationv1.ResourceAttributes{
		Group: addOnsResource.Group, Resource: addOnsResource.Resource, Verb: "create", Namespace: host,
	})
	if err != nil || ok {
		return err
	}
	return forbidden(addOnsResource, c.now.Name,
		"metadata.annotations[%s]: user %q cannot create managedclusteraddons in namespace %s, so its add-ons cannot run on cluster %[3]s; "+
			"have someone write it who may", key, c.UserInfo.Username, host)
}
