// SPDX-License-Identifier: Apache-2.0

// Package gotemplate makes the manifests of an add-on of a folder of Go templates,
// mostly an embedded one. New reads and checks the folder once; the AddOn that it
// returns has Options, Manifests and InstallNamespace, for an author's type to embed.
//
// A template holds YAML or JSON, any number of objects; one without any is left out.
// Its data are the values of package values. A value that is missing is an error and
// not an empty text.
//
// What a value may do to the YAML around it: nothing. {{ .Name }} prints texts that
// cannot change the shape of what they stand in, and refuses others, with the place;
// these are printed by json, quote or base64, or in a block by indent. So a proxy
// or a variable that a user sets adds no field to a manifest.
//
// Functions:
//   - json VALUE: any value on one line, {{ json .Tolerations }};
//   - quote VALUE: a text, number or boolean as a text in quotes;
//   - base64 TEXT;
//   - indent N TEXT: each line after N spaces, for blocks that begin with |;
//   - load FILE: a file of the folder as it is;
//   - regexMatch EXPRESSION TEXT;
//   - resources LIST ID: of ResourceRequirements what a container has, by
//     kind:name:container, as in {{ json (resources .ResourceRequirements
//     "deployments:web:web") }}.
//
// Other than in the API's own implementation: a file may hold several objects, errors
// are returned where panics were, and values are escaped or refused.
package gotemplate
