// SPDX-License-Identifier: Apache-2.0

// Package helm makes the manifests of an add-on of a Helm chart, mostly an embedded
// one. It renders and does no more: nothing is installed, there are no releases, and
// lookup finds nothing. New reads and checks the chart once; the AddOn that it returns
// has Options, Manifests and InstallNamespace, for an author's type to embed.
//
// Who does not use it does not link Helm.
//
// What a chart sees:
//   - .Values: those of the chart, overridden by values.Defaults and Config.Values, and
//     last by what is known without being told, all of it in camel case: clusterName,
//     addonName, addonInstallNamespace, installMode, hubKubeConfigSecret,
//     managedKubeConfigSecret;
//   - .Release: the name of the add-on and the namespace of its agent, as installed for
//     the first time;
//   - .Capabilities.KubeVersion: that of the managed cluster.
//
// Manifests are the custom resource definitions of the chart, then the templates in the
// order of their paths; whoever applies them has an order of kinds. Hooks of Helm do not
// exist here: a chart that has one is refused with the template that it is in, tests
// apart, which are left out. What runs before an add-on goes is a Job with a mark, see
// addonkit.Manifest.Hook.
//
// Other than in the API's own implementation: a document without a kind is an error,
// dependencies follow their conditions and tags, and a chart that wants another
// version of Kubernetes is refused.
package helm
