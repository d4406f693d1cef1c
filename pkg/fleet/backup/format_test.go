// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// file returns a backup with objects, which are lines of kind and name.
func file(t testing.TB, version string, lines ...string) string {
	t.Helper()
	var out bytes.Buffer
	w := newWriter(&out)
	require.NoError(t, w.line(Header{APIVersion: version, Kind: headerKind, Program: "v1.0.0", Server: "https://hub"}))
	for _, line := range lines {
		kind, name, _ := strings.Cut(line, " ")
		u := &unstructured.Unstructured{Object: map[string]any{}}
		for _, k := range order {
			if k.name == kind {
				u.SetAPIVersion(k.resource.GroupVersion().String())
			}
		}
		if u.GetAPIVersion() == "" {
			u.SetAPIVersion("v1")
		}
		u.SetKind(kind)
		u.SetName(name)
		require.NoError(t, w.object(u))
	}
	_, err := w.end()
	require.NoError(t, err)
	return out.String()
}

// read reads a backup to its end.
func read(text string) ([]string, error) {
	r, err := open(strings.NewReader(text))
	var names []string
	for err == nil {
		var u *unstructured.Unstructured
		if u, err = r.next(); err == nil {
			names = append(names, u.GetKind()+" "+u.GetName())
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

func TestAWholeBackupIsRead(t *testing.T) {
	lines := []string{"Namespace apps", "ManagedCluster c1", "ManagedCluster c2", "ManifestWork w"}
	got, err := read(file(t, apiVersion, lines...))
	require.NoError(t, err)
	require.Equal(t, lines, got)
	got, err = read(file(t, apiVersion))
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestABrokenBackupIsRefused(t *testing.T) {
	whole := file(t, apiVersion, "Namespace apps", "ManagedCluster c1")
	rows := strings.SplitAfter(strings.TrimSuffix(whole, "\n"), "\n")
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":              {"", "it ends after 0 lines"},
		"another file":         {"hello\n", "its first line is no header of a backup"},
		"an object first":      {strings.Join(rows[1:], ""), "its first line is no header of a backup"},
		"another format":       {file(t, "backup.ocm/v9", "Namespace apps"), `it is "backup.ocm/v9"`},
		"cut between lines":    {strings.Join(rows[:2], ""), "it ends after 2 lines"},
		"cut within a line":    {whole[:len(rows[0])+20], "line 2: "},
		"cut in the last line": {whole[:len(whole)-10], "its last line is not as it was written"},
		"a line is missing":    {rows[0] + rows[2] + rows[3], "does not have the checksum"},
		"a value is changed":   {strings.Replace(whole, `"c1"`, `"c2"`, 1), "does not have the checksum"},
		"a count is changed":   {strings.Replace(whole, `"ManagedCluster":1`, `"ManagedCluster":999999999999`, 1), "does not have the checksum"},
		"a huge number":        {strings.Replace(whole, `"ManagedCluster":1`, `"ManagedCluster":1e999`, 1), "its last line is not as it was written"},
		"something follows":    {whole + "\n{}\n", "something follows its last line"},
		"another kind":         {file(t, apiVersion, "Pod p"), `line 2: no backup has objects of kind "Pod"`},
		"a webhook":            {file(t, apiVersion, "ValidatingWebhookConfiguration p"), "no backup has objects of kind"},
		"out of order":         {file(t, apiVersion, "ManagedCluster c1", "Namespace apps"), "line 3: a Namespace comes too late"},
		"a path as a name":     {file(t, apiVersion, "ManagedCluster ../../etc"), "line 2: "},
		"no name":              {file(t, apiVersion, "ManagedCluster "), "line 2: metadata"},
		"a line without end":   {rows[0] + strings.Repeat("x", maxLine+1), "line 2 is longer than 8388608 bytes"},
		"deep nesting":         {rows[0] + strings.Repeat("[", 100000) + "\n", "line 2: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(tc.text)
			var refused *fleet.Error
			require.ErrorAs(t, err, &refused)
			require.Equal(t, fleet.Refused, refused.Kind)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// FuzzRead: whatever is read is whole, or an error that a user can act on.
func FuzzRead(f *testing.F) {
	whole := file(f, apiVersion, "Namespace apps", "ManagedCluster c1", "ManifestWork w")
	for _, seed := range []string{"", whole, whole[:len(whole)/2], whole + whole, "{}\n", strings.ReplaceAll(whole, "\n", "\r\n")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		names, err := read(text)
		if err != nil {
			var known *fleet.Error
			require.ErrorAs(t, err, &known)
			return
		}
		lines := strings.Count(strings.TrimRight(text, "\r\n"), "\n")
		require.Equal(t, lines-1, len(names), "every line but the first and the last is an object")
	})
}
