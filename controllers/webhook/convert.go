// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/conversion"
)

// convert answers a ConversionReview of version v1 or v1beta1, which have the same form. It
// converts either all objects or none.
func (s *Server) convert(w http.ResponseWriter, r *http.Request) {
	review := &apiextensionsv1.ConversionReview{}
	done, err := s.decodeBody(r, review)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	defer done()
	if review.Request == nil {
		http.Error(w, "the review has no request", http.StatusBadRequest)
		return
	}
	answer := &apiextensionsv1.ConversionReview{TypeMeta: review.TypeMeta, Response: convertAll(review.Request)}
	s.write(w, answer)
}

func convertAll(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	response := &apiextensionsv1.ConversionResponse{UID: request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for i := range request.Objects {
		converted, err := convertOne(request.Objects[i].Raw, request.DesiredAPIVersion)
		if err != nil {
			response.ConvertedObjects = nil
			response.Result = metav1.Status{Status: metav1.StatusFailure, Message: fmt.Sprintf("converting object %d of %d: %v", i+1, len(request.Objects), err)}
			return response
		}
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Raw: converted})
	}
	return response
}

// convertOne converts one object. It refuses objects longer than any that an API server
// stores: a decoded object takes many times its length.
func convertOne(raw []byte, version string) ([]byte, error) {
	if len(raw) > maxConverted {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(raw), maxConverted)
	}
	return conversion.Convert(raw, version)
}
