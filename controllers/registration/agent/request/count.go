// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// maxPages bounds how many pages of Max requests are read: anyone who may send requests may
// send many, and reading beyond a flood is not worth the memory.
const maxPages = 50

var selves = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}

// who is an identity as the API server authenticated it.
type who struct {
	name        string
	credentials []string
}

// isThrottled reports whether the hub holds Max requests from this same sender. Labels prove
// nothing: anyone who may send requests may label them with any cluster, and ten of them
// would otherwise stop that cluster's renewals.
func isThrottled(ctx context.Context, hub dynamic.Interface, selector string) (bool, error) {
	options := metav1.ListOptions{LabelSelector: selector, Limit: Max}
	var self who
	for page, own := 0, 0; page < maxPages; page++ {
		list, err := hub.Resource(resource).List(ctx, options)
		if err != nil {
			return false, err
		}
		if page == 0 {
			if len(list.Items) < Max {
				return false, nil
			}
			if self, err = whoAmI(ctx, hub); err != nil {
				return false, err
			}
		}
		for i := range list.Items {
			if self.isSenderOf(&list.Items[i]) {
				own++
			}
		}
		if own >= Max {
			return true, nil
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			break
		}
	}
	return false, nil
}

// whoAmI asks the hub for this agent's identity there; everyone may ask that.
func whoAmI(ctx context.Context, hub dynamic.Interface) (who, error) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
	answer, err := hub.Resource(selves).Create(ctx, u, metav1.CreateOptions{})
	if err != nil {
		return who{}, err
	}
	out := who{}
	out.name, _, _ = unstructured.NestedString(answer.Object, "status", "userInfo", "username")
	out.credentials, _, _ = unstructured.NestedStringSlice(answer.Object, "status", "userInfo", "extra", clusterv1.ExtraCredentialID)
	return out, nil
}

// isSenderOf reports whether a request has the same sender, by what the API server recorded in it.
// Many senders may share one account by using tokens of it; a certificate changes with each
// renewal.
func (w who) isSenderOf(csr *unstructured.Unstructured) bool {
	name, _, _ := unstructured.NestedString(csr.Object, "spec", "username")
	if name != w.name {
		return false
	}
	if !slices.ContainsFunc(w.credentials, func(id string) bool { return strings.HasPrefix(id, "JTI=") }) {
		return true
	}
	credentials, _, _ := unstructured.NestedStringSlice(csr.Object, "spec", "extra", clusterv1.ExtraCredentialID)
	return slices.Equal(credentials, w.credentials)
}
