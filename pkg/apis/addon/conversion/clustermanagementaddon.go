// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// clusterManagementAddOnToNewer drops addOnConfiguration, turns supported configurations
// into default ones and renames the references to them.
func clusterManagementAddOnToNewer(f *fields, addOn map[string]any) {
	spec := f.object(addOn, "spec")
	delete(spec, "addOnConfiguration")
	f.each(spec, "supportedConfigs", f.defaultConfig)
	rename(spec, "supportedConfigs", "defaultConfigs")
	rename(f.object(addOn, "status"), "defaultconfigReferences", "defaultConfigReferences")
}

// clusterManagementAddOnToOlder turns default configurations into supported ones
// and renames the references to them.
func clusterManagementAddOnToOlder(f *fields, addOn map[string]any) {
	spec := f.object(addOn, "spec")
	f.each(spec, "defaultConfigs", f.supportedConfig)
	rename(spec, "defaultConfigs", "supportedConfigs")
	rename(f.object(addOn, "status"), "defaultConfigReferences", "defaultconfigReferences")
}

// defaultConfig moves the default of a supported configuration up into the entry,
// and marks an entry without one.
func (f *fields) defaultConfig(entry map[string]any) map[string]any {
	referent := f.object(entry, "defaultConfig")
	for _, field := range []string{"defaultConfig", "name", "namespace"} {
		delete(entry, field)
	}
	name := f.text(referent, "name")
	if name == "" || name == addonv1alpha1.ReservedNoDefault {
		entry["name"] = addonv1alpha1.ReservedNoDefault
		return entry
	}
	put(entry, "name", name)
	put(entry, "namespace", f.text(referent, "namespace"))
	return entry
}

// supportedConfig moves the name of a default configuration down into the entry's
// default, unless the name says that there is none.
func (f *fields) supportedConfig(entry map[string]any) map[string]any {
	name, namespace := f.take(entry, "name"), f.take(entry, "namespace")
	delete(entry, "defaultConfig")
	if name == "" || name == addonv1alpha1.ReservedNoDefault {
		return entry
	}
	referent := map[string]any{"name": name}
	put(referent, "namespace", namespace)
	entry["defaultConfig"] = referent
	return entry
}
