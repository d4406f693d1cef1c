// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// mount writes files as a kubelet mounts a secret, through a link to a directory, and returns
// the directory.
func mount(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "..1"), 0o700))
	require.NoError(t, os.Symlink("..1", filepath.Join(dir, "..data")))
	for name, content := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "..1", name), []byte(content), 0o600))
		require.NoError(t, os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)))
	}
	return dir
}

func TestReadFileReadsWhatIsBesideIt(t *testing.T) {
	ca := string(caPEM(t))
	dir := mount(t, map[string]string{
		"kubeconfig": string(document("server: 'https://c1', certificate-authority: ca.crt", "tokenFile: token, token: old")),
		"ca.crt":     ca, "token": "t0ken\n",
	})
	got, err := ReadFile(filepath.Join(dir, "kubeconfig"))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(&Config{
		ClusterEntry: "hub", Server: "https://c1", CAData: []byte(ca), Token: "t0ken",
		Files: Files{CA: filepath.Join(dir, "ca.crt"), Token: filepath.Join(dir, "token")},
	}, got))

	dir = mount(t, map[string]string{"tls.crt": "cert", "tls.key": "key"})
	path := filepath.Join(dir, "kubeconfig")
	require.NoError(t, os.WriteFile(path, document("server: 'https://c1'", "client-certificate: "+filepath.Join(dir, "tls.crt")+", client-key: ./tls.key"), 0o600))
	got, err = ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, []byte("cert"), got.CertData)
	require.Equal(t, Files{Cert: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}, got.Files)
}

func TestReadFileReadsNothingElse(t *testing.T) {
	good := "server: 'https://c1'"
	for name, tc := range map[string]struct {
		cluster, user string
		want          string
	}{
		"an absolute path":      {good, "tokenFile: /etc/passwd", "tokenFile: it names a file elsewhere"},
		"a path that leads out": {good, "tokenFile: ../token", "it names a file elsewhere"},
		"the directory above":   {good, "tokenFile: ..", "is a directory"},
		"a folder beside it":    {good, "tokenFile: ..data/token", "it names a file elsewhere"},
		"a CA elsewhere":        {good + ", certificate-authority: /ca.crt", "token: t", "certificate-authority: it names a file elsewhere"},
		"no such file":          {good, "tokenFile: absent", "no such file"},
		"an empty file":         {good, "tokenFile: empty", "is empty"},
		"a file too large":      {good, "tokenFile: large", "more than 262144 bytes"},
		"a CA that is none":     {good + ", certificate-authority: token", "token: t", "no PEM certificate"},
		"a lonely certificate":  {good, "client-certificate: token", "must be given together"},
		"a program":             {good, "exec: {command: sh}", "exec"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := mount(t, map[string]string{
				"kubeconfig": string(document(tc.cluster, tc.user)), "token": "hunter2", "empty": "", "large": strings.Repeat("x", maxSize+1),
			})
			_, err := ReadFile(filepath.Join(dir, "kubeconfig"))
			require.ErrorContains(t, err, tc.want)
			require.NotContains(t, err.Error(), "hunter2")
		})
	}
	_, err := ReadFile(filepath.Join(t.TempDir(), "kubeconfig"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestReadMountedReadsTheKeysThatExist(t *testing.T) {
	dir := mount(t, map[string]string{"kubeconfig": "k", "tls.crt": "c", "other": "o"})
	got, err := ReadMounted(filepath.Join(dir, "kubeconfig"), "tls.crt", "cluster-name")
	require.NoError(t, err)
	require.Equal(t, map[string][]byte{"kubeconfig": []byte("k"), "tls.crt": []byte("c")}, got)
	_, err = ReadMounted(filepath.Join(dir, "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
