// SPDX-License-Identifier: Apache-2.0

// Package values makes what the manifests of an add-on are filled with: of the
// AddOnDeploymentConfigs of an instance, of its annotation, of the registries that
// images come from, and of what is known without being told.
//
// Values are JSON: maps, lists, texts, numbers and booleans, by names that begin with
// a capital, as Go templates read them. A Func gives some of them, Merge puts them
// together. Everything but the reading of Configs is pure.
//
// Other than in the API's own implementation: every AddOnDeploymentConfig of the instance
// counts, the first one most; each of their contents is read once, whatever the number of
// clusters; tolerations need no nodeSelector; what is wrong is told with its field.
package values
