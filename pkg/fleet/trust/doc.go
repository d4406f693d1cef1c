// SPDX-License-Identifier: Apache-2.0

// Package trust decides how a hub is reached and with which CA it is trusted, before any token
// is sent to it.
package trust
