// SPDX-License-Identifier: Apache-2.0

// Package addon lists, creates, enables, configures, disables and deletes add-ons.
package addon
