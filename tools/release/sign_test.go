// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// verify checks a signature as krew-index/README.md tells users to.
func verify(t *testing.T, signers, file string) error {
	t.Helper()
	text, err := os.Open(file)
	require.NoError(t, err)
	defer text.Close()
	cmd := exec.Command("ssh-keygen", "-Y", "verify", "-f", signers, "-I", "kubectl-ocm", "-n", signatureNamespace,
		"-s", file+signatureSuffix)
	cmd.Stdin = text
	return cmd.Run()
}

// newKey makes an SSH key, and the file by which users know it.
func newKey(t *testing.T) (key, signers string) {
	t.Helper()
	key = filepath.Join(t.TempDir(), "key")
	out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput()
	require.NoError(t, err, string(out))
	public, err := os.ReadFile(key + ".pub")
	require.NoError(t, err)
	signers = key + ".signers"
	require.NoError(t, os.WriteFile(signers, []byte("kubectl-ocm "+string(public)), 0o600))
	return key, signers
}

func TestASignatureHoldsForTheFileAndTheKey(t *testing.T) {
	key, signers := newKey(t)
	_, others := newKey(t)
	file := filepath.Join(t.TempDir(), checksumsName)
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("0a", 32)+"  a.tar.gz\n"), 0o600))

	for range 2 { // the second replaces the first
		require.NoError(t, sign(context.Background(), key, file))
	}
	require.NoError(t, verify(t, signers, file))
	require.Error(t, verify(t, others, file), "another key")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("0b", 32)+"  a.tar.gz\n"), 0o600))
	require.Error(t, verify(t, signers, file), "another file")
}

func TestWithoutAKeyNoSignatureIsLeft(t *testing.T) {
	file := filepath.Join(t.TempDir(), checksumsName)
	require.NoError(t, os.WriteFile(file+signatureSuffix, nil, 0o600))
	require.NoError(t, sign(context.Background(), "", file))
	require.NoFileExists(t, file+signatureSuffix)
}

func TestAKeyThatIsNotThereIsNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), checksumsName)
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	key := filepath.Join(t.TempDir(), "no-key")
	require.ErrorContains(t, sign(context.Background(), key, file), key)
}
