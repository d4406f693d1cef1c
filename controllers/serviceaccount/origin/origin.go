// SPDX-License-Identifier: Apache-2.0

// Package origin tells for which hub a ServiceAccount of a managed cluster was created: the agent
// that creates accounts marks them, and others look for the marks. It does no I/O.
package origin

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
)

// yes is the value of the label of accounts that were created for a hub.
const yes = "true"

// Hub returns what identifies a hub on its clusters: a digest of the address of its API server.
func Hub(address string) string { return fmt.Sprintf("%x", digest.OfParts(address)) }

// Marks returns the label and the annotation of an account that is created for a hub.
func Marks(hub string) (labels, annotations map[string]string) {
	return map[string]string{authenticationv1beta1.LabelManaged: yes}, map[string]string{authenticationv1beta1.AnnotationHub: hub}
}

// Of reports whether an account was created for a ManagedServiceAccount of any hub, and the hub that it
// names, which is empty for one that an agent of another make created.
func Of(account metav1.Object) (hub string, created bool) {
	return account.GetAnnotations()[authenticationv1beta1.AnnotationHub], account.GetLabels()[authenticationv1beta1.LabelManaged] == yes
}
