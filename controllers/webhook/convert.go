// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/conversion"
)

// convert answers a ConversionReview of version v1 or v1beta1, which have the same form. It
// converts either all objects or none.
func convert(_ context.Context, review *apiextensionsv1.ConversionReview) bool {
	if review.Request == nil {
		return false
	}
	review.Request, review.Response = nil, convertAll(review.Request)
	return true
}

func convertAll(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	var out []runtime.RawExtension
	for i, o := range request.Objects {
		converted, err := convertOne(o.Raw, request.DesiredAPIVersion)
		if err != nil {
			message := fmt.Sprintf("converting object %d of %d: %v", i+1, len(request.Objects), err)
			return &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusFailure, Message: message}}
		}
		out = append(out, runtime.RawExtension{Raw: converted})
	}
	return &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}, ConvertedObjects: out}
}

// convertOne converts one object. It refuses objects longer than any that an API server
// stores: a decoded object takes many times its length.
func convertOne(raw []byte, version string) ([]byte, error) {
	if len(raw) > maxConverted {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(raw), maxConverted)
	}
	return conversion.Convert(raw, version)
}
