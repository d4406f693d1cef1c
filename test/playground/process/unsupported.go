// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package process

import (
	"os"
	"os/exec"
)

func startOf(int) (string, error) { return "", ErrUnsupported }

func detach(*exec.Cmd) {}

func signalGroup(int, bool) error { return ErrUnsupported }

func pause(int, bool) error { return ErrUnsupported }

func stopped(int) (bool, error) { return false, ErrUnsupported }

func exitCode(*os.ProcessState) int { return -1 }
