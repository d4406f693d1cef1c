// SPDX-License-Identifier: Apache-2.0

// Package gotemplate renders the manifests of an add-on from a folder of Go templates,
// usually an embedded one. New reads and checks the folder once; the AddOn that it returns
// has Options, Manifests and InstallNamespace, for an author's type to embed.
//
// A template holds YAML or JSON with any number of objects, including none. Its data are
// the values of package values. A missing value is an error, not an empty text.
//
// A value cannot change the YAML around it. {{ .Name }} prints only texts that leave the
// structure as it is and refuses others, with their location; print those with json, quote
// or base64, or in a block with indent. So a proxy or a variable that a user sets cannot
// add a field to a manifest.
//
// Functions:
//   - json VALUE: any value on one line, {{ json .Tolerations }};
//   - quote VALUE: a text, number or boolean as a quoted text;
//   - base64 TEXT;
//   - indent N TEXT: each line after N spaces, for blocks that begin with |;
//   - load FILE: a file of the folder, unchanged;
//   - regexMatch EXPRESSION TEXT;
//   - resources LIST ID: the resources of a container, as kind:name:container, from a list of
//     ResourceRequirements: {{ json (resources .ResourceRequirements "deployments:web:web") }}.
//
// Differences from the API's own implementation: a file may hold several objects, errors
// are returned instead of panics, and values are escaped or refused.
package gotemplate
