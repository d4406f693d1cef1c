// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	addonv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1beta1"
)

// managedClusterAddOnToNewer keeps the install namespace in an annotation, drops
// the inline names of configurations, and gives every registration its type.
func managedClusterAddOnToNewer(f *fields, addOn map[string]any) {
	namespace := f.take(f.object(addOn, "spec"), "installNamespace")
	if annotated := f.takeAnnotation(addOn); namespace == "" {
		namespace = annotated
	}
	if namespace != "" {
		annotations := f.ensured(f.ensured(addOn, "metadata"), "annotations")
		annotations[addonv1alpha1.AnnotationInstallNamespace] = namespace
	}
	status := f.object(addOn, "status")
	delete(status, "addOnConfiguration")
	f.each(status, "configReferences", f.dropInlineName)
	driver := f.take(status, "kubeClientDriver")
	f.each(status, "registrations", func(entry map[string]any) map[string]any {
		return f.typedRegistration(entry, driver)
	})
}

// managedClusterAddOnToOlder takes the install namespace from its annotation, fills in the
// inline names of configurations, and gives every registration its signer. The driver of
// the first kubeClient becomes that of the whole add-on.
func managedClusterAddOnToOlder(f *fields, addOn map[string]any) {
	delete(f.object(addOn, "spec"), "installNamespace")
	if namespace := f.takeAnnotation(addOn); namespace != "" {
		f.ensured(addOn, "spec")["installNamespace"] = namespace
	}
	status := f.object(addOn, "status")
	f.each(status, "configReferences", f.fillInlineName)
	delete(status, "kubeClientDriver")
	first := true
	f.each(status, "registrations", func(entry map[string]any) map[string]any {
		if first && f.text(entry, "type") == string(addonv1beta1.RegistrationTypeKubeClient) {
			put(status, "kubeClientDriver", f.text(f.object(entry, "kubeClient"), "driver"))
			first = false
		}
		return f.signedRegistration(entry)
	})
}

// takeAnnotation removes the annotation that holds the install namespace and returns its
// value.
func (f *fields) takeAnnotation(addOn map[string]any) string {
	metadata := f.object(addOn, "metadata")
	annotations := f.object(metadata, "annotations")
	if _, found := annotations[addonv1alpha1.AnnotationInstallNamespace]; !found {
		return ""
	}
	namespace := f.take(annotations, addonv1alpha1.AnnotationInstallNamespace)
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return namespace
}

// dropInlineName removes the name and namespace that a configuration reference has beside
// desiredConfig.
func (f *fields) dropInlineName(reference map[string]any) map[string]any {
	delete(reference, "name")
	delete(reference, "namespace")
	return reference
}

// fillInlineName sets the name and namespace of a configuration reference from
// its desiredConfig.
func (f *fields) fillInlineName(reference map[string]any) map[string]any {
	desired := f.object(f.dropInlineName(reference), "desiredConfig")
	put(reference, "name", f.text(desired, "name"))
	put(reference, "namespace", f.text(desired, "namespace"))
	return reference
}

// typedRegistration turns a registration with a signer into one with a type. The signer of
// client certificates for the API server makes it a kubeClient, which has the driver and no
// organizational units.
func (f *fields) typedRegistration(entry map[string]any, driver string) map[string]any {
	kind, member := addonv1beta1.RegistrationTypeCustomSigner, map[string]any{}
	signer, subject := f.text(entry, "signerName"), f.object(entry, "subject")
	if signer == addonv1alpha1.KubeAPIServerSigner {
		kind = addonv1beta1.RegistrationTypeKubeClient
		delete(subject, "organizationUnit")
		put(member, "driver", driver)
	} else {
		put(member, "signerName", signer)
	}
	rename(subject, "organizationUnit", "organizationUnits")
	put(member, "subject", subject)
	typed := map[string]any{"type": string(kind)}
	put(typed, string(kind), member)
	return typed
}

// signedRegistration turns a registration with a type into one with a signer.
func (f *fields) signedRegistration(entry map[string]any) map[string]any {
	kind, signer := addonv1beta1.RegistrationTypeKubeClient, addonv1alpha1.KubeAPIServerSigner
	if f.text(entry, "type") != string(kind) {
		kind = addonv1beta1.RegistrationTypeCustomSigner
		signer = f.text(f.object(entry, string(kind)), "signerName")
	}
	subject := f.object(f.object(entry, string(kind)), "subject")
	if signer == addonv1alpha1.KubeAPIServerSigner {
		delete(subject, "organizationUnits")
	}
	rename(subject, "organizationUnits", "organizationUnit")
	signed := map[string]any{}
	put(signed, "signerName", signer)
	put(signed, "subject", subject)
	return signed
}
