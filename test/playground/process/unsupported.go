// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package process

import (
	"errors"
	"os"
	"os/exec"
)

func startOf(int) (string, error) { return "", ErrUnsupported }

func detach(*exec.Cmd) {}

func signalGroup(int, bool) error { return ErrUnsupported }

func pause(int, bool) error { return ErrUnsupported }

func stopped(int) (bool, error) { return false, ErrUnsupported }

func exitCode(*os.ProcessState) int { return -1 }

// ErrBusy is never returned here.
var ErrBusy = errors.New("another process works on it")

// Lock fails here.
func Lock(string) (unlock func(), err error) { return nil, ErrUnsupported }
