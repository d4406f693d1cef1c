// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

func TestTablesAreReadByWhereTheirHeadsAre(t *testing.T) {
	got := tablesOf(`NAMESPACE   NAME   RESTARTS       NOMINATED NODE   READINESS GATES
default     a      2 (3h ago)     <none>           <none>
            ü                     n1

NAME    DATA
roots   1
`)
	require.Equal(t, []ui.Table{
		{
			Heads: []string{"NAMESPACE", "NAME", "RESTARTS", "NOMINATED NODE", "READINESS GATES"},
			Rows:  [][]string{{"default", "a", "2 (3h ago)", "<none>", "<none>"}, {"", "ü", "", "n1", ""}},
		},
		{Heads: []string{"NAME", "DATA"}, Rows: [][]string{{"roots", "1"}}},
	}, got)
	require.Empty(t, tablesOf(""))
}

func TestWhatIsPrintedAsOneList(t *testing.T) {
	for name, tc := range map[string]struct {
		words, want string
		format      ui.Format
	}{
		"a word of its own": {
			words: "get pods -o yaml -A", want: "get pods -o json -A", format: ui.YAML,
		},
		"joined by =": {
			words: "get pods --output=json", want: "get pods --output=json", format: ui.JSON,
		},
		"joined": {
			words: "get pods -oyaml", want: "get pods -ojson", format: ui.YAML,
		},
		"another format": {
			words: "get pods -o wide", want: "get pods -o wide",
		},
		"of a program in a container": {
			words: "exec web -- get -o json", want: "exec web -- get -o json",
		},
	} {
		t.Run(name, func(t *testing.T) {
			words, format := documents(strings.Fields(tc.words))
			require.Equal(t, tc.want, strings.Join(words, " "))
			require.Equal(t, tc.format, format)
		})
	}
}

func TestObjectsTellTheirCluster(t *testing.T) {
	a := answer{cluster: "c1"}
	a.out.WriteString(`{"kind":"List","items":[{"kind":"Pod","metadata":{"name":"a"}},{"kind":"Pod"}]}{"kind":"Service","spec":{"n":12345678901234567890}}`)
	found, err := a.objects()
	require.NoError(t, err)
	require.Len(t, found, 3)
	for _, o := range found {
		metadata := o.(map[string]any)["metadata"].(map[string]any)
		require.Equal(t, "c1", metadata["annotations"].(map[string]any)["open-cluster-management.io/cluster-name"])
	}
	a.out.WriteString("more")
	_, err = a.objects()
	require.ErrorContains(t, err, "reading what kubectl prints on c1")
}

func TestWhatNeedsATerminalOrDoesNotEnd(t *testing.T) {
	for words, want := range map[string]string{
		"get pods":                      "",
		"get pods -w":                   "kubectl get -w",
		"get pods --watch=false":        "",
		"-n apps edit cm x":             "kubectl edit",
		"logs -f web":                   "kubectl logs -f",
		"apply -f -":                    "",
		"exec -it web -- sh":            "kubectl exec -it",
		"exec web -- tail -f --watch x": "",
		"--namespace apps port-forward": "kubectl port-forward",
		"rollout status deploy/x -w":    "kubectl rollout -w",
		"rollout status deploy/edit":    "",
	} {
		require.Equal(t, want, interactive(strings.Fields(words)), words)
	}
}

func TestWhatIsATable(t *testing.T) {
	for words, want := range map[string]bool{
		"get pods":                        true,
		"-n x get pods -o wide":           true,
		"get pods -owide":                 true,
		"get pods -o custom-columns=A:.b": true,
		"get pods -o name":                false,
		"get pods --no-headers":           false,
		"get pods --output=name":          false,
		"get pods -ojsonpath={.x}":        false,
		"top nodes":                       true,
		"describe pods":                   false,
	} {
		require.Equal(t, want, isTable(strings.Fields(words)), words)
	}
}
