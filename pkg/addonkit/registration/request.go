// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// namePrefix begins the names of the add-ons' certificate requests; approvalMessage is the
// message of their approval.
const (
	namePrefix      = "addon"
	approvalMessage = "Auto approving addon agent certificate."
)

// usages are what a certificate of an add-on may be used for.
var usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth}

// Belongs reports whether a certificate request is about the add-on of the instance, by its
// name and labels; Check examines who asks, and for what.
func Belongs(csr *certificatesv1.CertificateSigningRequest, i addonkit.Instance) bool {
	return strings.HasPrefix(csr.Name, namePrefix) &&
		csr.Labels[clusterv1.LabelClusterName] == i.AddOn.Namespace && csr.Labels[addonv1alpha1.LabelAddOnName] == i.AddOn.Name
}

// Check returns why a certificate request is not one that the agent of this cluster makes
// for one of the registrations, or nil if it is.
func Check(csr *certificatesv1.CertificateSigningRequest, i addonkit.Instance, registrations []addonv1alpha1.RegistrationConfig) error {
	if !Belongs(csr, i) {
		return fmt.Errorf("its name and labels are not those of add-on %s of cluster %s", i.AddOn.Name, i.AddOn.Namespace)
	}
	if agent, ok := identity.ParseUser(csr.Spec.Username); !ok || agent.Cluster != i.AddOn.Namespace {
		return fmt.Errorf("its requester %q is not an agent of cluster %s", csr.Spec.Username, i.AddOn.Namespace)
	}
	at := slices.IndexFunc(registrations, func(r addonv1alpha1.RegistrationConfig) bool { return r.SignerName == csr.Spec.SignerName })
	if at < 0 {
		return fmt.Errorf("its signer %q is not that of a registration", csr.Spec.SignerName)
	}
	for _, u := range csr.Spec.Usages {
		if !slices.Contains(usages, u) {
			return fmt.Errorf("its usage %q is not one of a client", u)
		}
	}
	request, err := identity.ReadRequest(csr.Spec.Request)
	if err != nil {
		return fmt.Errorf("reading it: %w", err)
	}
	if err := checkSubject(request, i.AddOn, registrations[at]); err != nil {
		return err
	}
	if err := checkNames(request, i.AddOn.Name+addonv1alpha1.DNSNameSuffix); err != nil {
		return err
	}
	if request.CheckSignature() != nil {
		return errors.New("its signature does not match its key")
	}
	return nil
}

var (
	oidCommonName = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidGroup      = asn1.ObjectIdentifier{2, 5, 4, 10}
	oidUnit       = asn1.ObjectIdentifier{2, 5, 4, 11}
	oidAltNames   = asn1.ObjectIdentifier{2, 5, 29, 17}
)

// checkSubject compares a subject with that of a registration. If the registration names
// none, the agent asks for the default user and its own group.
func checkSubject(request *x509.CertificateRequest, addOn *addonv1alpha1.ManagedClusterAddOn, r addonv1alpha1.RegistrationConfig) error {
	names := 0
	for _, a := range request.Subject.Names {
		switch {
		case a.Type.Equal(oidCommonName):
			names++
		case a.Type.Equal(oidGroup), a.Type.Equal(oidUnit):
		default:
			return fmt.Errorf("its subject has the attribute %s", a.Type)
		}
	}
	user, groups, units := cmp.Or(r.Subject.User, whoIs(addOn).User(addOn.Name)), r.Subject.Groups, r.Subject.OrganizationUnits
	if r.SignerName == addonv1alpha1.KubeAPIServerSigner {
		units = nil
		if len(groups) == 0 {
			groups = []string{whoIs(addOn).Group()}
		}
	}
	if names != 1 || request.Subject.CommonName != user {
		return fmt.Errorf("its user is %q, not %q", request.Subject.CommonName, user)
	}
	asked := request.Subject.Organization
	if !slices.Contains(groups, authenticated) {
		asked = slices.DeleteFunc(slices.Clone(asked), func(g string) bool { return g == authenticated })
	}
	if !sameSet(asked, groups) {
		return fmt.Errorf("its groups are %q, not %q", request.Subject.Organization, groups)
	}
	if !sameSet(request.Subject.OrganizationalUnit, units) {
		return fmt.Errorf("its organizational units are %q, not %q", request.Subject.OrganizationalUnit, units)
	}
	return nil
}

// sameSet compares without order; a repeated item must be repeated in both.
func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// checkNames allows the DNS name of the add-on and no other extension.
func checkNames(request *x509.CertificateRequest, dns string) error {
	for _, e := range request.Extensions {
		if !e.Id.Equal(oidAltNames) {
			return fmt.Errorf("it asks for the extension %s", e.Id)
		}
	}
	if len(request.EmailAddresses) > 0 || len(request.IPAddresses) > 0 || len(request.URIs) > 0 ||
		slices.ContainsFunc(request.DNSNames, func(n string) bool { return n != dns }) {
		return fmt.Errorf("it asks for other names than %s", dns)
	}
	return nil
}

// Open reports whether a request is still unanswered.
func Open(csr *certificatesv1.CertificateSigningRequest) bool {
	return !hasCondition(csr, certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed)
}

// ToSign reports whether the add-on has to sign a request: one that is approved, has no
// certificate, and is not for the signer of Kubernetes.
func ToSign(csr *certificatesv1.CertificateSigningRequest) bool {
	return csr.Spec.SignerName != addonv1alpha1.KubeAPIServerSigner && len(csr.Status.Certificate) == 0 &&
		hasCondition(csr, certificatesv1.CertificateApproved) && !hasCondition(csr, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed)
}

func hasCondition(csr *certificatesv1.CertificateSigningRequest, kinds ...certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return slices.Contains(kinds, c.Type) })
}

// Approved returns the request with the approval.
func Approved(csr *certificatesv1.CertificateSigningRequest, now time.Time) *certificatesv1.CertificateSigningRequest {
	out := csr.DeepCopy()
	out.Status.Conditions = append(out.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: clusterv1.ReasonAutoApproved,
		Message: approvalMessage, LastUpdateTime: metav1.NewTime(now),
	})
	return out
}
