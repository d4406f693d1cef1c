// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/scale/report"
)

func TestPercentiles(t *testing.T) {
	var took []time.Duration
	for i := 100; i > 0; i-- {
		took = append(took, time.Duration(i)*time.Second)
	}
	for part, want := range map[float64]time.Duration{0.5: 50 * time.Second, 0.9: 90 * time.Second, 0.99: 99 * time.Second, 1: 100 * time.Second} {
		require.Equal(t, want, report.Percentile(took, part), "%v", part)
	}
	require.Equal(t, time.Second, report.Percentile([]time.Duration{time.Second}, 0.5))
}

func TestAReportIsAPageWithItsRawFiguresAndPlots(t *testing.T) {
	stage := &report.Stage{
		Name: "Joining <all>", From: 5 * time.Second, To: 10 * time.Second,
		Times:    []report.Times{{What: "a join", Took: []time.Duration{time.Second, 3 * time.Second}}, {What: "nothing"}},
		Requests: []report.Requests{{By: "hub", What: "create namespaces", Count: 2, Bytes: 300}, {By: "agent", What: "patch x", Count: 9, Bytes: -1}},
	}
	stage.Add("joined", "%d", 2)
	r := report.Report{
		Title: "Two clusters", Command: "make scale CLUSTERS=2", Method: "Text.", Machine: []report.Fact{{What: "cores", Value: "2"}},
		Stages: []*report.Stage{stage}, Processes: []string{"hub", "etcd"},
		Samples: []report.Sample{
			{At: 0, Of: []*report.Load{{CPU: 10 * time.Second, Anon: 1 << 20, Resident: 2 << 20}, nil}},
			{At: 5 * time.Second, Of: []*report.Load{{CPU: 12 * time.Second, Anon: 2 << 20, Resident: 3 << 20}, nil}},
			// The process was replaced.
			{At: 9 * time.Second, Of: []*report.Load{{CPU: time.Second, Anon: 3 << 20, Resident: 4 << 20}, nil}},
		},
		Plots: []report.Plot{{
			File: "joined.svg", Title: "Clusters", Unit: "number",
			Lines: []report.Line{{Name: "joined", Points: []report.Point{{At: 1, Value: 7}}}},
		}},
	}
	dir := filepath.Join(t.TempDir(), "new")
	require.NoError(t, r.Write(dir))
	read := func(name string) string {
		t.Helper()
		raw, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(raw)
	}
	page := read("README.md")
	for _, want := range []string{
		"# Two clusters\n", "make scale CLUSTERS=2", "| cores | 2 |", "| joined | 2 |", "| a join | 2 | 1s | 3s | 3s | 3s |", "| nothing | 0 | - |",
		"| Joining <all> | 1.0 | 3 / 4 | - | - |", "| hub | create namespaces | 2 | 300 |", "| agent | patch x | 9 | - |", "![Clusters](joined.svg)",
	} {
		require.Contains(t, page, want)
	}
	require.Less(t, strings.Index(page, "patch x"), strings.Index(page, "create namespaces"), "the most frequent come first")
	require.Contains(t, read("times.csv"), "Joining <all>,a join,3.000\n")
	require.Contains(t, read("requests.csv"), "Joining <all>,hub,create namespaces,2,300\n")
	require.Contains(t, read("processes.csv"), "9.000,hub,1.000,3145728,4194304\n")
	for _, name := range []string{"memory.svg", "cpu.svg", "joined.svg"} {
		text := read(name)
		require.Equal(t, name != "joined.svg", strings.Contains(text, "Joining &lt;all&gt;"), "%s marks the stages that begin in it", name)
		for d := xml.NewDecoder(strings.NewReader(text)); ; {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
		}
	}
	// 2 s of CPU in 5 s are 0.4 cores: full height is 0.5.
	require.Contains(t, read("cpu.svg"), ">0.5</text>")
}
