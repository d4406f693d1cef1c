// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// clusterManagementAddOnToNewer drops addOnConfiguration, and turns supported
// configurations into default ones and renames the references to them.
func clusterManagementAddOnToNewer(addOn map[string]any) error {
	spec, err := object(addOn, "spec")
	if err != nil {
		return err
	}
	delete(spec, "addOnConfiguration")
	if err := each(spec, "supportedConfigs", defaultConfig); err != nil {
		return err
	}
	rename(spec, "supportedConfigs", "defaultConfigs")
	status, err := object(addOn, "status")
	if err != nil {
		return err
	}
	rename(status, "defaultconfigReferences", "defaultConfigReferences")
	return nil
}

// clusterManagementAddOnToOlder turns default configurations into supported ones
// and renames the references to them.
func clusterManagementAddOnToOlder(addOn map[string]any) error {
	spec, err := object(addOn, "spec")
	if err != nil {
		return err
	}
	if err := each(spec, "defaultConfigs", supportedConfig); err != nil {
		return err
	}
	rename(spec, "defaultConfigs", "supportedConfigs")
	status, err := object(addOn, "status")
	if err != nil {
		return err
	}
	rename(status, "defaultConfigReferences", "defaultconfigReferences")
	return nil
}

// defaultConfig moves the default of a supported configuration up into the entry,
// and marks an entry without one.
func defaultConfig(entry map[string]any) (map[string]any, error) {
	referent, err := object(entry, "defaultConfig")
	if err != nil {
		return nil, err
	}
	for _, field := range []string{"defaultConfig", "name", "namespace"} {
		delete(entry, field)
	}
	name, err := text(referent, "name")
	if err != nil {
		return nil, err
	}
	if name == "" || name == addonv1alpha1.ReservedNoDefault {
		entry["name"] = addonv1alpha1.ReservedNoDefault
		return entry, nil
	}
	entry["name"] = name
	namespace, err := text(referent, "namespace")
	put(entry, "namespace", namespace)
	return entry, err
}

// supportedConfig moves the name of a default configuration down into the entry's
// default, unless the name says that there is none.
func supportedConfig(entry map[string]any) (map[string]any, error) {
	name, err := take(entry, "name")
	if err != nil {
		return nil, err
	}
	namespace, err := take(entry, "namespace")
	if err != nil {
		return nil, err
	}
	delete(entry, "defaultConfig")
	if name == "" || name == addonv1alpha1.ReservedNoDefault {
		return entry, nil
	}
	referent := map[string]any{"name": name}
	put(referent, "namespace", namespace)
	entry["defaultConfig"] = referent
	return entry, nil
}
