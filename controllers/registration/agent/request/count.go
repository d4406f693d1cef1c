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

// maxPages bounds how many pages of Max requests are looked through: whoever may
// ask may ask often, and what is behind a flood is not worth the memory.
const maxPages = 50

var selves = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}

// who is somebody as the API server knows them.
type who struct {
	name        string
	credentials []string
}

// throttled tells whether the hub holds Max requests of this very sender. Labels
// tell nothing: everybody who may ask may put the label of any cluster on a
// request, and who sends ten of them would end the renewals of that cluster.
func throttled(ctx context.Context, hub dynamic.Interface, selector string) (bool, error) {
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
			if self.sent(&list.Items[i]) {
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

// whoAmI asks the hub whom it takes this agent for; everybody may ask that.
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

// sent tells whether a request is of the same sender, by what the API server put
// on it. One account stands for many where they show tokens of it; a certificate
// changes with each renewal.
func (w who) sent(csr *unstructured.Unstructured) bool {
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
