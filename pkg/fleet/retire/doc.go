// SPDX-License-Identifier: Apache-2.0

// Package retire removes the operator of Klusterlets that a join installed, once it has no agent
// left to run.
package retire
