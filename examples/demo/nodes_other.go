// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"context"
	"errors"
)

// hold is never an argument without real nodes.
const hold = "hold"

var errNoNodes = errors.New("they need Linux")

func realNodes() error { return errNoNodes }

func (d *demo) startNodes(context.Context, []string) error { return errNoNodes }

func stopNodes(context.Context, string) {}

func holdNodes(context.Context, string, []string) error { return errNoNodes }
