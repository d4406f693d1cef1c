// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// CVE-2019-11253: a few lines of YAML, or of brackets, must not become gigabytes
// or minutes.
func TestCVE201911253AKubeconfigIsReadInBoundedTime(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 12; i++ {
		level := string(rune('a' + i))
		before := string(rune('a' + i - 1))
		if i == 1 {
			before = "a0"
		}
		bomb.WriteString(level + ": &" + level + " [" + strings.TrimSuffix(strings.Repeat("*"+before+",", 9), ",") + "]\n")
	}
	for name, text := range map[string]string{
		"references to references": bomb.String() + "clusters: *l\n",
		"deep flow lists":          "clusters: " + strings.Repeat("[", 100_000),
		"deep flow maps":           strings.Repeat("{a: ", 100_000),
		"deep block lists":         strings.Repeat("- ", 100_000) + "a",
		"deep JSON":                strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000),
		"ten megabytes":            "a: " + strings.Repeat("x", 10<<20),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := Parse([]byte(text))
			require.Error(t, err)
			require.Less(t, len(err.Error()), 4096)
			require.Less(t, time.Since(start), time.Minute)
		})
	}
}
