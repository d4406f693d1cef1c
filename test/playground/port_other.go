// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package playground

import "github.com/kubectl-ocm/kubectl-ocm/test/playground/process"

type heldPort struct{ port int }

func holdPort(int) (*heldPort, error) { return nil, process.ErrUnsupported }

func (*heldPort) release() error { return nil }
