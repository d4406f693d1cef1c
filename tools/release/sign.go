// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
)

const (
	// signatureSuffix follows the name of a file in that of its signature.
	signatureSuffix = ".sig"
	// signatureNamespace keeps a signature of a release from serving as one of anything
	// else that the same key signs.
	signatureNamespace = "kubectl-ocm-release"
)

// sign signs a file by the releaser's SSH key, or by the one of the running ssh-agent whose
// public half the key file holds. The checksums are what is signed: they name everything
// else. Without a key, a signature of an earlier release is removed.
func sign(ctx context.Context, key, file string) error {
	if err := os.Remove(file + signatureSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the earlier signature: %w", err)
	}
	if key == "" {
		return nil
	}
	cmd := exec.CommandContext(ctx, "ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", signatureNamespace, file)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("signing %s by the key %s: %w\n%s", file, key, err, text)
	}
	return nil
}
