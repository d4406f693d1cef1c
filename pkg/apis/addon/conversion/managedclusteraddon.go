// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	addonv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1beta1"
)

// managedClusterAddOnToNewer keeps the install namespace in an annotation, drops
// the inline names of configurations, and gives every registration its type.
func managedClusterAddOnToNewer(addOn map[string]any) error {
	spec, err := object(addOn, "spec")
	if err != nil {
		return err
	}
	namespace, err := take(spec, "installNamespace")
	if err != nil {
		return err
	}
	annotated, err := takeAnnotation(addOn)
	if err != nil {
		return err
	}
	if namespace == "" {
		namespace = annotated
	}
	if err := annotate(addOn, namespace); err != nil {
		return err
	}
	status, err := object(addOn, "status")
	if err != nil {
		return err
	}
	delete(status, "addOnConfiguration")
	if err := each(status, "configReferences", dropInlineName); err != nil {
		return err
	}
	driver, err := take(status, "kubeClientDriver")
	if err != nil {
		return err
	}
	return each(status, "registrations", func(entry map[string]any) (map[string]any, error) {
		return typedRegistration(entry, driver)
	})
}

// managedClusterAddOnToOlder takes the install namespace from its annotation,
// fills in the inline names of configurations, and gives every registration its
// signer.
func managedClusterAddOnToOlder(addOn map[string]any) error {
	namespace, err := takeAnnotation(addOn)
	if err != nil {
		return err
	}
	spec, err := object(addOn, "spec")
	if err != nil {
		return err
	}
	delete(spec, "installNamespace")
	if namespace != "" {
		if spec, err = ensured(addOn, "spec"); err != nil {
			return err
		}
		spec["installNamespace"] = namespace
	}
	status, err := object(addOn, "status")
	if err != nil {
		return err
	}
	if err := each(status, "configReferences", fillInlineName); err != nil {
		return err
	}
	driver, seen := "", false
	err = each(status, "registrations", func(entry map[string]any) (map[string]any, error) {
		signed, entryDriver, isKubeClient, err := signedRegistration(entry)
		if isKubeClient && !seen {
			driver, seen = entryDriver, true
		}
		return signed, err
	})
	if err != nil {
		return err
	}
	delete(status, "kubeClientDriver")
	if driver != "" {
		status["kubeClientDriver"] = driver
	}
	return nil
}

// annotate sets the annotation that holds the install namespace.
func annotate(addOn map[string]any, namespace string) error {
	if namespace == "" {
		return nil
	}
	metadata, err := ensured(addOn, "metadata")
	if err != nil {
		return err
	}
	annotations, err := ensured(metadata, "annotations")
	if err != nil {
		return err
	}
	annotations[addonv1alpha1.AnnotationInstallNamespace] = namespace
	return nil
}

// takeAnnotation removes the annotation that holds the install namespace and
// returns its value.
func takeAnnotation(addOn map[string]any) (string, error) {
	metadata, err := object(addOn, "metadata")
	if err != nil {
		return "", err
	}
	annotations, err := object(metadata, "annotations")
	if err != nil {
		return "", err
	}
	if _, found := annotations[addonv1alpha1.AnnotationInstallNamespace]; !found {
		return "", nil
	}
	namespace, err := take(annotations, addonv1alpha1.AnnotationInstallNamespace)
	if len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return namespace, err
}

// ensured returns a field that holds an object, and makes it if it is absent.
func ensured(parent map[string]any, field string) (map[string]any, error) {
	value, err := object(parent, field)
	if value == nil && err == nil {
		value = map[string]any{}
		parent[field] = value
	}
	return value, err
}

// dropInlineName removes the name and namespace of a configuration reference that
// stand beside desiredConfig.
func dropInlineName(reference map[string]any) (map[string]any, error) {
	delete(reference, "name")
	delete(reference, "namespace")
	return reference, nil
}

// fillInlineName sets the name and namespace of a configuration reference from
// its desiredConfig.
func fillInlineName(reference map[string]any) (map[string]any, error) {
	desired, err := object(reference, "desiredConfig")
	if err != nil {
		return nil, err
	}
	for _, field := range []string{"name", "namespace"} {
		delete(reference, field)
		value, err := text(desired, field)
		if err != nil {
			return nil, err
		}
		put(reference, field, value)
	}
	return reference, nil
}

// typedRegistration turns a registration with a signer into one with a type. The
// signer of client certificates for the API server makes it a kubeClient, which
// has no organizational units and has the driver.
func typedRegistration(entry map[string]any, driver string) (map[string]any, error) {
	signer, err := text(entry, "signerName")
	if err != nil {
		return nil, err
	}
	subject, err := object(entry, "subject")
	if err != nil {
		return nil, err
	}
	if signer == addonv1alpha1.KubeAPIServerSigner {
		member := map[string]any{}
		delete(subject, "organizationUnit")
		putObject(member, "subject", subject)
		put(member, "driver", driver)
		return registration(addonv1beta1.RegistrationTypeKubeClient, member), nil
	}
	member := map[string]any{}
	rename(subject, "organizationUnit", "organizationUnits")
	putObject(member, "subject", subject)
	put(member, "signerName", signer)
	return registration(addonv1beta1.RegistrationTypeCustomSigner, member), nil
}

// registration makes a registration of version v1beta1, without the member if
// that is empty.
func registration(kind addonv1beta1.RegistrationType, member map[string]any) map[string]any {
	entry := map[string]any{"type": string(kind)}
	putObject(entry, string(kind), member)
	return entry
}

// signedRegistration turns a registration with a type into one with a signer. It
// returns the driver, and whether the registration is a kubeClient.
func signedRegistration(entry map[string]any) (signed map[string]any, driver string, isKubeClient bool, err error) {
	kind, err := text(entry, "type")
	if err != nil {
		return nil, "", false, err
	}
	isKubeClient = kind == string(addonv1beta1.RegistrationTypeKubeClient)
	if !isKubeClient {
		kind = string(addonv1beta1.RegistrationTypeCustomSigner)
	}
	member, err := object(entry, kind)
	if err != nil {
		return nil, "", false, err
	}
	subject, err := object(member, "subject")
	if err != nil {
		return nil, "", false, err
	}
	signer, err := text(member, "signerName")
	if err != nil {
		return nil, "", false, err
	}
	if isKubeClient {
		signer = addonv1alpha1.KubeAPIServerSigner
		if driver, err = text(member, "driver"); err != nil {
			return nil, "", false, err
		}
	}
	signed = map[string]any{}
	put(signed, "signerName", signer)
	if signer == addonv1alpha1.KubeAPIServerSigner {
		delete(subject, "organizationUnits")
	}
	rename(subject, "organizationUnits", "organizationUnit")
	putObject(signed, "subject", subject)
	return signed, driver, isKubeClient, nil
}
