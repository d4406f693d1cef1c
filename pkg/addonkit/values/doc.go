// SPDX-License-Identifier: Apache-2.0

// Package values makes the values that the manifests of an add-on are rendered with: from
// the AddOnDeploymentConfigs of an instance, from its annotation, from the registries of
// images, and from what is always known.
//
// Values are JSON: maps, lists, texts, numbers and booleans, under names that begin with a
// capital letter, for Go templates. A Func returns some of them, Merge combines them.
// Everything but reading Configs is pure.
//
// Differences from the API's own implementation: every AddOnDeploymentConfig of the
// instance counts, the first one most; each content is read once, whatever the number of
// clusters; tolerations need no nodeSelector; errors name the field.
package values
