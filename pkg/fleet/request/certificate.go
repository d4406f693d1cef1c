// SPDX-License-Identifier: Apache-2.0

package request

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
)

// Fingerprint returns the SHA-256 of the requested public key.
func Fingerprint(csr *x509.CertificateRequest) string {
	sum := sha256.Sum256(csr.RawSubjectPublicKeyInfo)
	return trust.HashPrefix + hex.EncodeToString(sum[:])
}

// ParseCSR parses the X.509 request in a CertificateSigningRequest.
func ParseCSR(u *unstructured.Unstructured) (*x509.CertificateRequest, error) {
	text, _, _ := unstructured.NestedString(u.Object, "spec", "request")
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("its request is not base64")
	}
	return identity.ReadRequest(raw)
}

func checkUsages(u *unstructured.Unstructured) error {
	if signer, _, _ := unstructured.NestedString(u.Object, "spec", "signerName"); signer != clusterv1.SignerName {
		return fmt.Errorf("it asks the signer %q", signer)
	}
	usages, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "usages")
	for _, usage := range usages {
		if usage != "digital signature" && usage != "key encipherment" && usage != "client auth" {
			return fmt.Errorf("it asks for the usage %q", usage)
		}
	}
	return nil
}
