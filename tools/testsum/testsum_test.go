// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// goTest runs the real "go test -json" in a module extracted from the archive.
func goTest(t *testing.T, archive string, args ...string) string {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, txtar.Write(txtar.Parse([]byte("-- go.mod --\nmodule example.test/m\n\ngo 1.26\n"+archive)), root))
	cmd := exec.Command("go", append([]string{"test", "-json"}, append(args, "./...")...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	return string(out)
}

const passing = `-- good/good_test.go --
package good

import "testing"

func TestOne(t *testing.T) {}

func TestTable(t *testing.T) {
	for _, name := range []string{"a", "b", "c"} {
		t.Run(name, func(t *testing.T) {})
	}
}

func TestNotHere(x *testing.T) { x.SkipNow() }
-- none/none.go --
package none
`

func TestCounts(t *testing.T) {
	cases := map[string]struct {
		archive string
		args    []string
		last    string
		code    int
		shows   []string
		hides   []string
	}{
		"subtests count instead of their parent": {
			archive: passing, last: "4 passed, 0 failed, 1 skipped", code: 0,
			shows: []string{"ok  \texample.test/m/good"}, hides: []string{"=== RUN", "no test files"},
		},
		"a failing subtest is one failure and its output is shown": {
			archive: `-- bad/bad_test.go --
package bad

import "testing"

func TestTable(t *testing.T) {
	t.Run("fine", func(t *testing.T) { t.Log("quiet") })
	t.Run("wrong", func(t *testing.T) { t.Error("it is wrong") })
}
`,
			last: "1 passed, 1 failed, 0 skipped", code: 1,
			shows: []string{"it is wrong", "FAIL\texample.test/m/bad"}, hides: []string{"quiet"},
		},
		"a parent that fails beside its subtests is a failure of its own": {
			archive: `-- bad/bad_test.go --
package bad

import "testing"

func TestTable(t *testing.T) {
	t.Run("fine", func(t *testing.T) {})
	t.Error("parent")
}
`,
			last: "1 passed, 1 failed, 0 skipped", code: 1, shows: []string{"parent"},
		},
		"a package that does not compile is one failure": {
			archive: passing + "-- broken/broken_test.go --\npackage broken\n\nvar x int = \"text\"\n",
			last:    "4 passed, 1 failed, 1 skipped",
			code:    1,
			shows: []string{
				"cannot use \"text\"",
				"broken [build failed]",
			},
		},
		"a panic outside a test is one failure": {
			archive: "-- bad/bad_test.go --\npackage bad\n\nimport \"testing\"\n\nfunc TestMain(m *testing.M) { panic(\"at the start\") }\n",
			last:    "0 passed, 1 failed, 0 skipped", code: 1, shows: []string{"at the start"},
		},
		"a test that never ends is one failure": {
			archive: "-- bad/bad_test.go --\npackage bad\n\nimport \"testing\"\n\nfunc TestFine(t *testing.T) {}\n\nfunc TestEnds(t *testing.T) { <-make(chan int) }\n",
			args:    []string{"-timeout", "1s"},
			last:    "1 passed, 1 failed, 0 skipped", code: 1, shows: []string{"panic: test timed out"},
		},
		"no test at all is a failure": {
			archive: "-- none/none.go --\npackage none\n", last: "0 passed, 0 failed, 0 skipped", code: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			code := run(nil, strings.NewReader(goTest(t, tc.archive, tc.args...)), &out, &errs)
			require.Equal(t, tc.code, code, out.String()+errs.String())
			printed := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			require.Equal(t, tc.last, printed[len(printed)-1], out.String())
			for _, s := range tc.shows {
				require.Contains(t, out.String(), s)
			}
			for _, s := range tc.hides {
				require.NotContains(t, out.String(), s)
			}
		})
	}
}

func TestOtherLinesPassThrough(t *testing.T) {
	in := "building 3 of 7\n{ not json\n" + goTest(t, passing)
	var out bytes.Buffer
	require.Equal(t, 0, run(nil, strings.NewReader(in), &out, &out))
	require.True(t, strings.HasPrefix(out.String(), "building 3 of 7\n{ not json\n"), out.String())
}

func TestRecordedRunsAreSummed(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	events := goTest(t, passing)
	for range 2 {
		var out bytes.Buffer
		require.Equal(t, 0, run([]string{"-record", record}, strings.NewReader(events), &out, &out), out.String())
	}

	var out bytes.Buffer
	require.Equal(t, 0, run([]string{"-total", record}, strings.NewReader(""), &out, &out))
	printed := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	require.Len(t, printed, 3, out.String())
	require.Contains(t, printed[0], "ok  \texample.test/m/good")
	require.Equal(t, "8 passed, 0 failed, 2 skipped", printed[2])
}

func TestTheSlowestTestsAreNamedFirst(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	events := `{"Action":"run","Package":"example.test/m/good","Test":"TestOne"}
{"Action":"pass","Package":"example.test/m/good","Test":"TestOne","Elapsed":10}
{"Action":"run","Package":"example.test/m/good","Test":"TestQuick"}
{"Action":"pass","Package":"example.test/m/good","Test":"TestQuick","Elapsed":9.9}
{"Action":"run","Package":"example.test/m/good","Test":"TestTable"}
{"Action":"run","Package":"example.test/m/good","Test":"TestTable/a"}
{"Action":"pass","Package":"example.test/m/good","Test":"TestTable/a","Elapsed":12.34}
{"Action":"pass","Package":"example.test/m/good","Test":"TestTable","Elapsed":12.35}
`
	var out bytes.Buffer
	require.Equal(t, 0, run([]string{"-record", record}, strings.NewReader(events), &out, &out), out.String())
	out.Reset()
	require.Equal(t, 0, run([]string{"-total", record}, strings.NewReader(""), &out, &out))
	require.Equal(t, "   12.3 s  good.TestTable/a\n   10.0 s  good.TestOne\n3 passed, 0 failed, 0 skipped\n", out.String())
}

func TestUnreadableRecordIsAnError(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	require.NoError(t, os.WriteFile(record, []byte("{\n"), 0o600))
	for name, args := range map[string][]string{"absent": {
		"-total",
		record + ".absent",
	}, "broken": {"-total", record}} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			require.Equal(t, 2, run(args, strings.NewReader(""), &out, &errs))
			require.Contains(t, errs.String(), "reading recorded results")
		})
	}
}
