// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/apitest"
)

// patient is a clock on which nothing is late, so that completions on a busy machine are complete.
type patient struct{ clock.RealClock }

func (patient) After(time.Duration) <-chan time.Time { return nil }

// TestMain lets scripts run the program under the names that it has on PATH.
func TestMain(m *testing.M) {
	program := func(name string) func() {
		return func() {
			s := app.Process()
			s.Clock = patient{}
			os.Exit(app.Run(context.Background(), s, append([]string{name}, os.Args[1:]...)))
		}
	}
	testscript.Main(m, map[string]func(){"kubectl-ocm": program("kubectl-ocm"), "kubectl_complete-ocm": program("kubectl_complete-ocm"), "ocm": program("ocm")})
}

// TestStories runs the scripts of plugins/testdata/script. The contexts are a hub and a
// managed cluster in memory.
func TestStories(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "../testdata/script", Setup: func(env *testscript.Env) error {
		fleet, err := os.ReadFile("testdata/fleet.yaml")
		if err != nil {
			return err
		}
		tb := env.T().(testing.TB)
		servers := map[string]*apitest.Server{"hub": apitest.New(tb, created, string(fleet)), "spoke": apitest.New(tb, created)}
		env.Setenv("KUBECONFIG", apitest.Kubeconfig(tb, servers))
		env.Setenv("HUB", servers["hub"].URL)
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: servers["hub"].Certificate().Raw})
		if err := os.WriteFile(filepath.Join(env.WorkDir, "hub-ca.pem"), ca, 0o600); err != nil {
			return err
		}
		env.Setenv("LANG", "C.UTF-8")
		return nil
	}})
}

func TestTheNameWeAreCalledByIsShown(t *testing.T) {
	for name, want := range map[string]string{"/krew/bin/kubectl-ocm": "kubectl ocm hub [command]", "C:\\bin\\ocm": "hub [command]", "ocm": "ocm hub [command]"} {
		var out strings.Builder
		s := app.Streams{In: strings.NewReader(""), Out: &out, Err: &out, Clock: clock.RealClock{}, Getenv: func(string) string { return "" }}
		if code := app.Run(t.Context(), s, []string{name, "hub"}); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: exit %d: %s", name, code, out.String())
		}
	}
}
