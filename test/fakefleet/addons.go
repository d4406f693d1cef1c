// SPDX-License-Identifier: Apache-2.0

package fakefleet

import (
	"context"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// answerPatience bounds how long an agent waits for the certificate of an add-on before it asks
// again.
const answerPatience = 10 * time.Minute

// addOnsResource is the plural of ManagedClusterAddOns.
const addOnsResource = "managedclusteraddons"

// watchAddOns watches the add-ons of the cluster until ctx ends, and gives each its
// certificates and its report. The lease of an add-on is on the managed cluster, so the hub
// sees only what the agent reports of it.
func (a *agent) watchAddOns(ctx context.Context) {
	path := "/apis/" + addonv1alpha1.GroupVersion.String() + "/namespaces/" + a.cluster + "/" + addOnsResource
	issued, known := map[string]bool{}, versions{}
	a.stream(ctx, call{resource: addOnsResource, path: path}, "0", func(kind string, raw json.RawMessage) (string, error) {
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		if err := json.Unmarshal(raw, addOn); err != nil {
			return "", err
		}
		version := addOn.ResourceVersion
		if kind == eventBookmark || known.isOld(kind, addOn) || addOn.DeletionTimestamp != nil {
			return version, nil
		}
		for _, r := range addOn.Status.Registrations {
			slot := fmt.Sprintf("%s %s %+v", addOn.Name, r.SignerName, r.Subject)
			if issued[slot] {
				continue
			}
			if err := a.certify(ctx, addOn.Name, r); err != nil {
				return "", fmt.Errorf("requesting a certificate of add-on %s: %w", addOn.Name, err)
			}
			issued[slot] = true
		}
		// After a conflict or a deletion, another event follows.
		err := a.reportAddOn(ctx, path, addOn)
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return "", err
		}
		known.note(version, addOn)
		return version, nil
	})
}

// certify requests a certificate for an add-on, and waits for it. Nobody uses it.
func (a *agent) certify(ctx context.Context, addOn string, r addonv1alpha1.RegistrationConfig) error {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	key, err := newKey()
	if err != nil {
		return err
	}
	body, err := signed(key, pkix.Name{
		CommonName: r.Subject.User, Organization: r.Subject.Groups, OrganizationalUnit: r.Subject.OrganizationUnits,
	}, certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "addon-" + a.cluster + "-" + addOn + "-",
			Labels:       map[string]string{clusterv1.LabelClusterName: a.cluster, clusterv1.LabelAddOnName: addOn},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: r.SignerName},
	})
	if err != nil {
		return err
	}
	_, err = a.wire.ask(ctx, body)
	return err
}

// reportAddOn reports that an add-on renews its lease and has its certificates, unless the hub
// knows.
func (a *agent) reportAddOn(ctx context.Context, path string, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	after := slices.Clone(addOn.Status.Conditions)
	now := a.fleet.o.Clock.Now()
	if addOn.Status.HealthCheck.Mode != addonv1alpha1.HealthCheckModeCustomized {
		reconcile.SetCondition(&after, metav1.Condition{
			Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonLeaseUpdated,
			Message: addOn.Name + " add-on is available.",
		}, now)
	}
	if len(addOn.Status.Registrations) > 0 {
		reconcile.SetCondition(&after, metav1.Condition{
			Type: addonv1alpha1.ConditionClusterCertificateRotated, Status: metav1.ConditionTrue,
			Reason: addonv1alpha1.ReasonClientCertificateUpdated, Message: "client certificate valid",
		}, now)
	}
	if apiequality.Semantic.DeepEqual(after, addOn.Status.Conditions) {
		return nil
	}
	body, err := json.Marshal(map[string]any{"metadata": basis(addOn), "status": map[string]any{"conditions": after}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return a.do(ctx, call{
		method: http.MethodPatch, resource: addOnsResource + "/status", path: path + "/" + addOn.Name + "/status", contentType: mergePatch, body: body,
	}, addOn)
}
