// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStampNamesTheVersionInBothPackages(t *testing.T) {
	want := "-s -w" +
		" -X k8s.io/component-base/version.gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36" +
		" -X k8s.io/client-go/pkg/version.gitVersion=v1.36.3 -X k8s.io/client-go/pkg/version.gitMajor=1 -X k8s.io/client-go/pkg/version.gitMinor=36"
	if got := stamp("v1.36.3"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPinnedReadsBlocksAndLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "go.mod")
	content := "module x\n\nrequire k8s.io/kubernetes v1.2.3\n\nrequire (\n\ta.b/c v0.1.0 // indirect\n)\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for module, want := range map[string]string{"k8s.io/kubernetes": "v1.2.3", "a.b/c": "v0.1.0"} {
		if got, err := pinned(file, module); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", module, got, err, want)
		}
	}
	if _, err := pinned(file, "a.b"); err == nil || !strings.Contains(err.Error(), "does not require a.b") {
		t.Errorf("want an error naming the module, got %v", err)
	}
}

// A partial copy, or a program of another version, counts as missing.
func TestMissingTrustsOnlyWholeProgramsOfTheVersion(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	const module = "k8s.io/kubernetes/test"
	if err := os.WriteFile(filepath.Join(dir, "half"), whole[:100], 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "other"), whole, 0o700); err != nil {
		t.Fatal(err)
	}
	wanted := []program{{name: "absent", module: module}, {name: "half", module: module}, {name: "other", module: module}}
	if got := missing(dir, wanted, map[string]string{module: "v1.0.0"}); len(got) != 3 {
		t.Errorf("got %v, want all three", got)
	}
}

func TestOneBuilderWaitsForTheOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(io.Discard, path)
	if err != nil {
		t.Fatal(err)
	}
	said, out := io.Pipe()
	done := make(chan error)
	go func() {
		again, err := lock(out, path)
		if err == nil {
			again()
		}
		done <- err
	}()
	// It prints that it waits once it finds the lock taken.
	text, err := bufio.NewReader(said).ReadString('\n')
	if err != nil || !strings.HasPrefix(text, "waiting") {
		t.Fatalf("got %q, %v", text, err)
	}
	unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
