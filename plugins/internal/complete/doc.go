// SPDX-License-Identifier: Apache-2.0

// Package complete offers words to shell completion: contexts, clusters, sets,
// works, tokens. A word is worth little waiting: what the API server does not
// answer within 300 milliseconds is not offered.
package complete
