// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/goldentest"
)

const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting, namespace: default}\ndata: {text: hello}\n"

// transcript returns one run with its output and exit code.
func transcript(words []string, s said) string {
	return fmt.Sprintf("$ kubectl ocm %s\n-- stdout --\n%s-- stderr --\n%s-- exit %d --\n", strings.Join(words, " "), s.out, s.err, s.code)
}

// outline lists the documents of a dry run; config/ tests their content.
func outline(t *testing.T, text string) string {
	t.Helper()
	var out strings.Builder
	for _, document := range strings.Split(strings.TrimPrefix(text, "---\n"), "---\n") {
		var u unstructured.Unstructured
		require.NoError(t, yaml.Unmarshal([]byte(document), &u.Object))
		fmt.Fprintf(&out, "%s %s %s/%s\n", u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName())
	}
	return out.String()
}

func TestWhatIsPrinted(t *testing.T) {
	for name, line := range map[string]string{
		"cluster-list":            "cluster list --context hub",
		"cluster-list-wide":       "cluster list --context hub -o wide",
		"cluster-list-json":       "cluster list --context hub -o json",
		"cluster-list-yaml":       "cluster list cluster3 --context hub -o yaml",
		"cluster-list-name":       "cluster list --context hub -o name",
		"cluster-list-jsonpath":   "cluster list --context hub -o jsonpath={.items[*].name}",
		"cluster-list-template":   "cluster list --context hub -o go-template={{range.items}}{{.status}};{{end}}",
		"cluster-list-sorted":     "cluster list --context hub --sort-by .created --no-headers",
		"cluster-list-labels":     "cluster list --context hub --show-labels",
		"cluster-list-set":        "cluster list --context hub --clusterset prod --status unknown",
		"cluster-list-color":      "cluster list --context hub --color always",
		"cluster-get-well":        "cluster get cluster1 --context hub",
		"cluster-get-unknown":     "cluster get cluster2 --context hub",
		"work-list":               "work list --context hub",
		"work-list-wide":          "work list --context hub -o wide",
		"work-list-json":          "work list -c cluster1 --context hub -o json",
		"hub-status":              "hub status --context hub",
		"hub-status-wide":         "hub status --context hub -o wide",
		"hub-status-json":         "hub status --context hub -o json",
		"hub-token-list":          "hub token list --context hub",
		"hub-token-selected":      "hub token list -l team=a --context hub",
		"hub-token":               "hub token --cluster cluster4 --context hub",
		"hub-init-dry-run":        "hub init --context spoke --dry-run --version v0.1.0",
		"hub-init-list-images":    "hub init --list-images --version v0.1.0 --image-registry registry.example.org/ocm/",
		"hub-upgrade-old-agent":   "hub upgrade --context hub --version v0.4.0",
		"hub-backup-folder":       "hub backup . --context hub",
		"hub-backup-secret":       "hub backup - --include-secrets registry --context hub",
		"hub-restore-dry-run":     "hub restore testdata/hub.jsonl --context hub --merge --dry-run",
		"hub-restore-not-empty":   "hub restore testdata/hub.jsonl --context hub",
		"hub-restore-not-a-hub":   "hub restore testdata/hub.jsonl --context spoke",
		"hub-restore-missing":     "hub restore nosuch.jsonl --context hub",
		"hub-restore-broken":      "hub restore testdata/fleet.yaml --context hub",
		"hub-clean-refused":       "hub clean --context hub --yes",
		"hub-clean-dry-run":       "hub clean --context hub --force --dry-run",
		"join-dry-run":            "join cluster4 --context spoke --hub-context hub --dry-run --version v0.1.0",
		"accept-show":             "accept --context hub",
		"accept-nobody":           "accept cluster9 --context hub",
		"unjoin-unchanged":        "unjoin cluster4 --context spoke --yes",
		"unjoin-dry-run":          "unjoin cluster3 --context spoke --hub-context hub --dry-run",
		"cluster-deny-dry-run":    "cluster deny cluster1 cluster2 --context hub --dry-run",
		"cluster-deny-needs-yes":  "cluster deny cluster1 --context hub",
		"cluster-deny-nobody":     "cluster deny nosuch --context hub",
		"cluster-deny-ignore":     "cluster deny nosuch cluster3 --context hub --yes --ignore-not-found --dry-run -o name",
		"cluster-deny-json":       "cluster deny cluster1 --context hub --dry-run -o json",
		"cluster-deny-no-name":    "cluster deny --context hub",
		"cluster-remove-dry-run":  "cluster remove cluster3 --context hub --dry-run",
		"cluster-remove-yes":      "cluster remove cluster3 --context hub",
		"cluster-remove-none":     "cluster remove cluster9 --context hub --yes",
		"cluster-remove-json":     "cluster remove cluster3 --context hub --force --dry-run -o json",
		"help-cluster-remove":     "cluster remove --help",
		"check":                   "check --context hub",
		"check-short":             "check --context hub --short --skip OCM0206",
		"check-json":              "check hub --context hub -o json",
		"check-name":              "check --context hub -o name",
		"check-cluster":           "check cluster cluster1 cluster2 nosuch --context hub",
		"check-hub-from-spoke":    "check hub --context spoke --hub-context hub -o name",
		"clusterset-add-move":     "clusterset add test -c cluster1,cluster3 --move --context hub",
		"check-spoke-none":        "check spoke --context spoke",
		"check-not-a-hub":         "check hub --context spoke",
		"check-explain":           "check --explain ocm0304",
		"check-explain-unknown":   "check --explain OCM9999",
		"check-explain-json":      "check --explain OCM0304 -o json",
		"check-list":              "check --list",
		"check-output-short":      "check --context hub -o short --skip OCM0206",
		"check-list-sarif":        "check --list -o sarif",
		"check-wrong-word":        "check banana --context hub",
		"clusterset-list":         "clusterset list --context hub",
		"clusterset-list-wide":    "clusterset list --context hub -o wide",
		"clusterset-list-json":    "clusterset list --context hub -o json",
		"clusterset-create-again": "clusterset create prod --context hub --dry-run -o json",
		"clusterset-create-other": "clusterset create prod --selector env=prod --context hub",
		"clusterset-create-wrong": "clusterset create Prod_1 --context hub",
		"clusterset-create-label": "clusterset create asia --selector region=asia,tier!=test --context hub --dry-run",
		"clusterset-add-moves":    "clusterset add test -c cluster1,cluster3 --context hub",
		"clusterset-add-labels":   "clusterset add eu -c cluster3 --context hub",
		"clusterset-add-no-set":   "clusterset add nosuch -c cluster3 --context hub",
		"clusterset-drop-asks":    "clusterset drop prod -c cluster1,cluster2 --context hub",
		"clusterset-drop-nobody":  "clusterset drop test --all --context hub --yes",
		"clusterset-drop-default": "clusterset drop default -c cluster3 --context hub --yes",
		"clusterset-bind-dry-run": "clusterset bind prod -n shop --context hub --dry-run",
		"clusterset-unbind-asks":  "clusterset unbind eu -n shop --context hub",
		"clusterset-delete-used":  "clusterset delete prod --context hub --yes",
		"clusterset-delete-bound": "clusterset delete eu --context hub --yes",
		"clusterset-delete-own":   "clusterset delete global --context hub --yes",
		"clusterset-delete-none":  "clusterset delete nosuch --context hub --yes",
		"help-clusterset":         "clusterset --help",
		"work-apply-dry-run":      "work apply hello -f - -c cluster1 --context hub --dry-run",
		"work-apply-diff":         "work apply web -f - -c cluster1 --context hub --diff",
		"work-list-missing":       "work list nosuch --context hub",
		"cluster-list-missing":    "cluster list nosuch --context hub -l env=prod",
		"cluster-list-no-set":     "cluster list --context hub --clusterset nosuch",
		"error-request-timeout":   "cluster list --request-timeout banana",
		"error-token-file":        "join cluster4 --context spoke --hub-apiserver https://hub:6443 --token-file missing",
		"error-join-not-a-hub":    "join cluster4 --context hub --hub-context spoke",
		"work-apply-owned":        "work apply web -f - -c cluster1,cluster2 --context hub",
		"work-delete-dry-run":     "work delete web -c cluster1 --context hub --dry-run",
		"work-delete-needs-yes":   "work delete web -c cluster1 --context hub",
		"error-no-such-context":   "cluster list --context hob",
		"error-no-context":        "cluster list",
		"error-not-a-hub":         "cluster list --context spoke",
		"error-unknown-command":   "hub statsu",
		"error-unknown-flag":      "cluster list --contxt hub",
		"error-surplus-argument":  "hub status x",
		"error-wrong-format":      "cluster list -o yml --context hub",
		"error-no-target":         "work apply web -f -",
		"error-layout":            "hub init --layout other",
		"error-join-layout":       "join cluster4 --context spoke --hub-context hub --layout split --adopt",
		"error-reserved-name":     "join kube-system --hub-context hub",
		"error-cluster-name":      "join Prod_1 --hub-context hub",
		"error-token-life":        "hub token create --ttl -1h --context hub",
		"error-replicas":          "hub init --replicas 0 --context spoke",
		"old-spelling-of-command": "get clusters --context hub",
		"help":                    "--help",
		"help-join":               "join --help",
	} {
		t.Run(name, func(t *testing.T) {
			words := strings.Fields(line)
			widths := map[string]int{"": 0}
			if strings.HasSuffix(name, "list") && name != "check-list" || strings.HasSuffix(name, "list-wide") || name == "hub-status" {
				widths = map[string]int{"": 0, "-80": 80, "-200": 200}
			}
			for suffix, width := range widths {
				s := newScene(t)
				s.width = width
				got := s.runIn(manifest, words...)
				if name == "hub-init-dry-run" || name == "join-dry-run" {
					got.out = outline(t, got.out)
				}
				goldentest.Compare(t, "golden/"+name+suffix, transcript(words, got))
			}
		})
	}
}
