// SPDX-License-Identifier: Apache-2.0

// Package member reads on a managed cluster what it is joined as: its agent, name and hub.
package member
