// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFlagsThatContradictEachOtherAreRefused: no flag is silently without effect beside another one.
// Nothing is sent.
func TestFlagsThatContradictEachOtherAreRefused(t *testing.T) {
	s := newScene(t)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("m.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: default\n"), 0o600))
	for line, want := range map[string]string{
		"accept cluster1 --show --deny":                              "--show and --deny are both given",
		"accept cluster1 --show --replace":                           "--show and --replace are both given",
		"accept cluster1 --show --requester=ann":                     "--show and --requester are both given",
		"accept cluster1 --show --dry-run":                           "--show and --dry-run are both given",
		"accept cluster1 --deny --wait":                              "--deny and --wait are both given",
		"accept cluster1 --deny --requester=ann":                     "--deny and --requester are both given",
		"accept cluster1 --all-pending":                              "--all-pending cannot be combined with names",
		"accept cluster1 --deny --replace":                           "--replace needs names, and cannot be combined with --deny",
		"addon create a -f m.yaml -k .":                              "-f and -k are both given",
		"addon create a -f m.yaml --render cluster1 --dry-run":       "--render already changes nothing",
		"addon delete a --diff --dry-run":                            "--diff already changes nothing",
		"addon disable a --all -c cluster1":                          "--all cannot be combined with other ways",
		"addon enable a -c cluster1 --placement n/p":                 "--placement cannot be combined with other ways",
		"addon list -w -o json":                                      "--watch prints a table and cannot be combined with -o json",
		"check --list --explain=OCM0101":                             "--list and --explain are both given",
		"check --list --e2e":                                         "--list and --e2e are both given",
		"check --explain=OCM0101 --wait=5s":                          "--explain and --wait are both given",
		"check --short -o json":                                      "--short and --output are both given",
		"check --pre hub --e2e":                                      "--e2e sends canaries to clusters",
		"check --pre hub -f m.yaml":                                  "leave --pre out",
		"cluster cordon cluster1 --all":                              "--all cannot be combined with other ways",
		"cluster label cluster1 env=prod env=test":                   "the label env is given two values",
		"cluster label cluster1 env=prod env-":                       "the label env is both set and removed",
		"cluster taint cluster1 env=a:NoSelect env:NoSelect-":        "the taint env is named more than once",
		"hub init --plan --dry-run":                                  "--plan needs --adopt",
		"hub token --print=token -o json":                            "--print and --output are both given",
		"hub token --use-bootstrap-token --uses 3":                   "a bootstrap token cannot be for a number of clusters",
		"hub upgrade --back-out --version v0.2.0":                    "--back-out restores what was recorded",
		"join cluster1 --hub-context hub --token-file m.yaml":        "--hub-context and a token are given",
		"join cluster1 --bundle m.yaml --token-file m.yaml":          "more than one token is given",
		"join cluster1 --adopt --back-out":                           "--back-out restores the agent",
		"join cluster1 --upgrade --rejoin":                           "--upgrade changes only the release",
		"join cluster1 --internal-endpoint --hub-apiserver=https://": "--internal-endpoint and --hub-apiserver are both given",
		"placement simulate web -f m.yaml":                           "give either the name of a placement or a file",
		"proxy kubeconfig -c cluster1 --as-sa robot --as-group a":    "--as-sa and --as-group are both given",
		"proxy kubectl -c cluster1 --as-sa robot --as ann get pods":  "--as-sa and --as are both given",
		"proxy port-forward -c c1 --as-sa robot --as-uid 1 svc/x 80": "--as-sa and --as-uid are both given",
		"proxy kubectl --all -c cluster1 get pods":                   "--all cannot be combined with other ways",
		"report -f page.html -o json":                                "-f writes a page, and -o json prints data",
		"work apply web -c cluster1 -f m.yaml --max-concurrency 5":   "belongs to a progressive rollout",
		"work list --sets -c cluster1":                               "--sets lists replica sets, which belong to no cluster",
		"work wait web -c cluster1 --all":                            "--all cannot be combined with other ways",
	} {
		if strings.HasPrefix(line, "join ") {
			line += " --context spoke"
		} else if !strings.HasPrefix(line, "proxy kubectl") {
			line += " --context hub"
		}
		s.refused(want, s.run(strings.Fields(line)...), line)
	}
}
