// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// Seen is what is cached of a Klusterlet. Its definition admits specs that cannot be
// decoded, for example with a duration that overflows; Problem then says why, and the spec is
// empty.
type Seen struct {
	Klusterlet *operatorv1.Klusterlet
	Problem    string
}

// Keep returns the function that makes a Seen of a watched Klusterlet.
func Keep(log logr.Logger) func(*unstructured.Unstructured) (Seen, bool) {
	return func(u *unstructured.Unstructured) (Seen, bool) {
		u.SetManagedFields(nil)
		k, problem, err := shared.Decode[operatorv1.Klusterlet](u)
		if err != nil {
			log.Error(err, "Klusterlet cannot be read and is left out", "klusterlet", u.GetName())
			return Seen{}, false
		}
		return Seen{k, problem}, true
	}
}
