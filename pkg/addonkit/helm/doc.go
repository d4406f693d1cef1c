// SPDX-License-Identifier: Apache-2.0

// Package helm renders the manifests of an add-on from a Helm chart, usually an embedded
// one. It only renders: nothing is installed, there are no releases, and lookup finds
// nothing. New reads and checks the chart once; the AddOn that it returns has Options,
// Manifests and InstallNamespace, for an author's type to embed.
//
// Programs that do not import this package do not link Helm.
//
// What a chart sees:
//   - .Values: the chart's own, overridden by values.Defaults and Config.Values, and last by
//     what is always known, in camel case: clusterName, addonName, addonInstallNamespace,
//     installMode, hubKubeConfigSecret, managedKubeConfigSecret;
//   - .Release: the name of the add-on and the namespace of its agent, as in a first
//     install;
//   - .Capabilities.KubeVersion: the version of the managed cluster.
//
// Manifests are the chart's custom resource definitions, followed by the templates in the
// order of their paths; the agent that applies them orders them by kind. Helm hooks are not
// supported: a chart with one is refused, naming the template, except that test hooks are
// left out. What has to run before an add-on is removed is a Job with a mark, see
// addonkit.Manifest.Hook.
//
// Differences from the API's own implementation: a document without a kind is an error,
// dependencies follow their conditions and tags, and a chart that needs another version of
// Kubernetes is refused.
package helm
