// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

// events are those of one failed test that writes this output.
func events(t *testing.T, output string) string {
	t.Helper()
	var in strings.Builder
	in.WriteString(`{"Action":"run","Package":"example.test/m/bad","Test":"TestOne"}` + "\n")
	for line := range strings.Lines(output) {
		e, err := json.Marshal(event{Action: "output", Package: "example.test/m/bad", Test: "TestOne", Output: line})
		require.NoError(t, err)
		in.WriteString(string(e) + "\n")
	}
	in.WriteString(`{"Action":"fail","Package":"example.test/m/bad","Test":"TestOne"}` + "\n")
	return in.String()
}

// TestTheReasonOfAFailureComesFirst reads outputs with much beside the reason.
func TestTheReasonOfAFailureComesFirst(t *testing.T) {
	archive, err := txtar.ParseFile(filepath.Join("testdata", "failures.txtar"))
	require.NoError(t, err)
	for _, file := range archive.Files {
		t.Run(file.Name, func(t *testing.T) {
			reason, output, ok := strings.Cut(string(file.Data), "in:\n")
			require.True(t, ok)
			output = strings.ReplaceAll(output, "MANY\n", strings.Repeat("    run.go:7: something\n", 1000))
			var out bytes.Buffer
			require.Equal(t, 1, run(nil, strings.NewReader(events(t, output)), &out, &out))
			require.True(t, strings.HasPrefix(out.String(), reason), out.String())
			require.Contains(t, out.String(), " lines are left out]\n")
			require.Less(t, strings.Count(out.String(), "\n"), 250)
			require.Contains(t, out.String(), "right before\n", "what happened last is shown")
		})
	}
}

// TestTheReasonsOfAllRunsAreRepeated records a failure with a long message.
func TestTheReasonsOfAllRunsAreRepeated(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	long := strings.Repeat("x", 1000)
	output := "    a_test.go:3: \n        \tError Trace:\t/src/a_test.go:3\n        \tError:      \t" + long + "\n"
	var out bytes.Buffer
	require.Equal(t, 1, run([]string{"-record", record}, strings.NewReader(events(t, output)), &out, &out))
	require.Contains(t, out.String(), long, "at the test itself the message is whole")
	out.Reset()
	require.Equal(t, 1, run([]string{"-total", record}, strings.NewReader(""), &out, &out))
	require.True(t, strings.HasPrefix(out.String(), "FAIL bad.TestOne\n    a_test.go:3: \n        \tError Trace:\t/src/a_test.go:3\n"), out.String())
	require.NotContains(t, out.String(), long)
	require.True(t, strings.HasSuffix(out.String(), "x …\n0 passed, 1 failed, 0 skipped\n"), out.String())
}

// TestARealAssertionIsRecognized fails one of testify in a real run of "go test".
func TestARealAssertionIsRecognized(t *testing.T) {
	if os.Getenv("TESTSUM_FAILS") != "" {
		t.Log("first\nthis")
		require.Equal(t, "a", "b", "they differ")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	converter := exec.Command("go", "tool", "test2json", "-p", "example.test/testsum", self, "-test.v=test2json", "-test.run=^"+t.Name()+"$")
	converter.Env = append(os.Environ(), "TESTSUM_FAILS=1")
	in, err := converter.Output()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	var out bytes.Buffer
	require.Equal(t, 1, run(nil, bytes.NewReader(in), &out, &out))
	require.Regexp(t, `^FAIL testsum.TestARealAssertionIsRecognized
    failure_test.go:\d+: 
        	Error Trace:	.*failure_test.go:\d+
        	Error:      	Not equal: 
(        	.*\n)+        	Messages:   	they differ
=== RUN   TestARealAssertionIsRecognized
    failure_test.go:\d+: first
        this
--- FAIL: `, out.String())
}
