// SPDX-License-Identifier: Apache-2.0

// Package addon lists, brings, configures, follows and removes add-ons.
package addon
