// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// reading has a valid command line for every command without --dry-run.
var reading = map[string][]string{
	"addon list":            {"--context", "hub"},
	"addon status":          {"hello", "--context", "hub"},
	"check":                 {"--context", "hub"},
	"cluster get":           {"cluster1", "--context", "hub"},
	"cluster list":          {"--context", "hub"},
	"cluster tree":          {"cluster1", "--context", "hub"},
	"clusterset list":       {"--context", "hub"},
	"completion bash":       {},
	"completion fish":       {},
	"completion powershell": {},
	"completion zsh":        {},
	"credential":            {"--managed-serviceaccount", "deployer", "--context", "hub"},
	"dev status":            {},
	"hub backup":            {"hub.jsonl", "--context", "hub"},
	"hub status":            {"--context", "hub"},
	"hub token list":        {"--context", "hub"},
	"options":               {},
	"placement explain":     {"shop/web", "--context", "hub"},
	"placement list":        {"-A", "--context", "hub"},
	"placement simulate":    {"shop/web", "--without", "cluster1", "--context", "hub"},
	"proxy adopt":           {"--context", "hub"},
	"proxy health":          {"--context", "hub"},
	"proxy kubeconfig":      {"-c", "cluster1", "--context", "hub"},
	"proxy kubectl":         {"-c", "cluster1", "--context", "hub", "get", "pods"},
	"proxy port-forward":    {"-c", "cluster1", "--context", "hub", "svc/web", "8080:80"},
	"proxy service":         {"apps/web", "-c", "cluster1", "--context", "hub"},
	"report":                {"--context", "hub"},
	"version":               {"--context", "hub"},
	"work diff":             {"web", "-f", "-", "-c", "cluster1", "--context", "hub"},
	"work list":             {"--context", "hub"},
	"work trace":            {"deploy/web", "-n", "shop", "--context", "spoke", "--hub-context", "hub"},
	"work tree":             {"web", "--context", "hub"},
	"work wait":             {"web", "-c", "cluster1", "--context", "hub"},
}

// command is a command that a user can run, with a valid line for it.
type command struct {
	*cobra.Command
	path string
	line []string
}

// commands returns all commands that do something.
func commands(t *testing.T) []command {
	var out []command
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := strings.TrimPrefix(cmd.CommandPath(), "kubectl ocm ")
		line, known := lines[path]
		if !known {
			line, known = reading[path]
		}
		if !cmd.HasSubCommands() && cmd.IsAvailableCommand() && cmd.Name() != "help" {
			require.True(t, known, "%q needs a line here", path)
		}
		if known {
			out = append(out, command{cmd, path, line})
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(app.Root(&ui.UI{Streams: ui.Process(), Program: "kubectl ocm"}))
	return out
}

// own calls do for each flag that only this command has. Those of all commands are judged once, at
// the root.
func (c command) own(do func(*pflag.Flag)) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			do(f)
		}
	})
}

// values are what flags of a type cannot mean. Each has a word of the refusal.
var values = map[string]map[string]string{
	"number": {"x": "", "": "", "1.5": "", strings.Repeat("9", 64<<10): "", "1\x1b[31m": "", "1\x002": "", "1\n2": "", "../1": ""},
	"text": {
		strings.Repeat("a", 64<<10): "is 65536 bytes long",
		"a\x1b[31mb":                "has a control character, U+001B",
		"a\x00b":                    "has a control character, U+0000",
		"a\u009b31mb":               "has a control character, U+009B",
	},
}

// fixed are the flags of which every command knows all values; named those that take names of
// objects.
var (
	fixed = strings.Fields("output dry-run layout fail-on pre print rollout delete-option update-strategy registration agent-rights " +
		"addon-rights nodes for mode status explain skip")
	objects = strings.Fields("cluster clusters clusterset namespace placement without install-namespace render")
	lined   = strings.Fields("cel description output")
)

// badValues are all values that a flag must refuse before anything happens. A flag that an earlier
// command has too is tried with one of them.
func badValues(f *pflag.Flag, again bool) map[string]string {
	if again {
		return map[string]string{"a\x1b[31mb": ""}
	}
	if t := f.Value.Type(); !strings.HasPrefix(t, "string") && !strings.Contains(t, "=") {
		return values["number"]
	}
	out := maps.Clone(values["text"])
	if strings.Contains(f.Value.Type(), "=") {
		out = map[string]string{"x": "", "a\x1b[31mb=true": "", "NoSuchGate=true": "", strings.Repeat("a", 64<<10) + "=true": ""}
		return out
	}
	if f.Value.Type() == "stringToString" {
		for value := range out {
			out[value] = "" // it is no KEY=VALUE either
		}
	}
	out[""] = ""
	if !slices.Contains(lined, f.Name) {
		out["a\nb"] = ""
	}
	if slices.Contains(fixed, f.Name) {
		out["no-such"] = ""
	}
	if slices.Contains(objects, f.Name) {
		out["../x"], out["a/../../b"], out["/"] = "is not a name", "is not a name", "is not a name"
	}
	return out
}

// refusal is the whole of what a refused line may do: nothing is sent, written or printed but the reason.
func (s *scene) refused(want string, said said, what string) {
	s.t.Helper()
	require.Equal(s.t, ui.ExitUsage, said.code, "%s: %s", what, said.err)
	require.Empty(s.t, said.out, what)
	require.Contains(s.t, said.err, "error: ", what)
	require.Contains(s.t, said.err, want, what)
	require.Contains(s.t, said.err, "\n  fix:   ", what)
	require.NotRegexp(s.t, "[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f]", said.err, what)
	require.Less(s.t, len(said.err), 1<<10, what)
	require.Zero(s.t, s.hub.Requests()+s.spoke.Requests(), what)
}

// short is a value in the name of a case.
func short(value string) string { return fmt.Sprintf("%.20q", value) }

// TestNoFlagTakesWhatItCannotMean walks the whole command tree: each flag, by its type, refuses what
// it cannot mean, and says which flag that is and what to do.
func TestNoFlagTakesWhatItCannotMean(t *testing.T) {
	s := newScene(t)
	t.Chdir(t.TempDir())
	tried, known := 0, map[string]bool{}
	for _, c := range commands(t) {
		c.own(func(f *pflag.Flag) {
			values := badValues(f, known[f.Name+f.Value.Type()])
			known[f.Name+f.Value.Type()] = true
			for value, want := range values {
				line := slices.Concat(words(c.path), c.line, []string{"--" + f.Name + "=" + value})
				if strings.Contains(c.Use, "WORDS") { // flags stand before what is for kubectl
					line = append(words(c.path), "--"+f.Name+"="+value, "get", "pods")
				}
				got := s.runIn(manifest, line...)
				what := c.path + " --" + f.Name + "=" + short(value)
				if f.Hidden { // the flag or argument that is in its place is named
					s.refused("", got, what)
				} else {
					s.refused(want, got, what)
					require.Contains(t, strings.ReplaceAll(got.err, "feature gate", "--feature-gates"), "--"+f.Name, what)
				}
				tried++
			}
		})
	}
	require.Greater(t, tried, 1000)
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, left, "nothing is written")
}

// TestNoArgumentIsWhatItCannotMean does the same for arguments, unknown flags and one argument too
// many.
func TestNoArgumentIsWhatItCannotMean(t *testing.T) {
	s := newScene(t)
	t.Chdir(t.TempDir())
	bad := maps.Clone(values["text"])
	bad[""], bad["a\nb"], bad["../x"], bad["/"] = "an argument is empty", "has several lines", "is not a name", "is not a name"
	for _, c := range commands(t) {
		if c.path == "proxy kubectl" || c.path == "proxy port-forward" {
			continue // their arguments are for kubectl
		}
		flags := slices.IndexFunc(c.line, func(word string) bool { return strings.HasPrefix(word, "-") })
		named := strings.Contains(c.Use, " ") && !strings.Contains(c.Use, "FILE") && !strings.HasPrefix(c.path, "hub token create")
		for value, want := range bad {
			line := append(words(c.path), c.line...)
			if named && flags > 0 {
				line = slices.Concat(words(c.path), []string{value}, c.line[1:])
			} else {
				line, want = append(line, value), ""
			}
			s.refused(want, s.runIn(manifest, line...), c.path+" "+short(value))
		}
		for _, line := range []string{"--no-such-flag", "--" + strings.Repeat("a", 64<<10), "--\x1b[31m", "-\x1b"} {
			s.refused("unknown", s.runIn(manifest, append(words(c.path), line)...), c.path+" "+short(line))
		}
	}
}

// broken are kubeconfigs by which nothing can be reached.
func broken(t *testing.T, whole string, hub, refusing string) map[string]string {
	raw, err := os.ReadFile(whole)
	require.NoError(t, err)
	text := string(raw)
	return map[string]string{
		"half a file":          text[:len(text)/2],
		"no file at all":       "",
		"no YAML":              "\x00\x1b[31m{",
		"a context of nothing": "apiVersion: v1\nkind: Config\ncontexts: [{name: hub, context: {cluster: gone}}, {name: spoke, context: {cluster: gone}}]\n",
		"a user of nothing": "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n" +
			"contexts: [{name: hub, context: {cluster: c, user: gone}}, {name: spoke, context: {cluster: c, user: gone}}]\n",
		"a server that is away":    strings.NewReplacer(hub, "https://127.0.0.1:1").Replace(text),
		"a server that refuses us": strings.NewReplacer(hub, refusing).Replace(text),
	}
}

// needsNoCluster are the commands that reach no cluster, or tell of what they reach and what not.
var needsNoCluster = strings.Fields("completion options dev version")

// TestWithoutAClusterEveryCommandSaysWhy: a server that is away, refused credentials and kubeconfigs
// that cannot be used are named with a fix, and nothing is printed or changed.
func TestWithoutAClusterEveryCommandSaysWhy(t *testing.T) {
	s := newScene(t)
	backup, err := filepath.Abs("testdata/hub.jsonl")
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("testdata", 0o700))
	require.NoError(t, os.Symlink(backup, "testdata/hub.jsonl"))
	refusing := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`)
	}))
	refusing.Config.ErrorLog = log.New(io.Discard, "", 0)
	defer refusing.Close()
	for what, text := range broken(t, os.Getenv("KUBECONFIG"), s.hub.URL, refusing.URL) {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		t.Setenv("KUBECONFIG", path)
		for _, c := range commands(t) {
			if slices.Contains(needsNoCluster, words(c.path)[0]) || slices.Contains(c.line, "spoke") && strings.Contains(what, "server") {
				continue
			}
			got := s.runIn(manifest, slices.Concat(words(c.path), []string{"--request-timeout=20s"}, c.line)...)
			name := what + ": " + c.path
			if c.path == "check" { // what is wrong is its result
				require.Contains(t, []int{ui.ExitFailed, ui.ExitFindings}, got.code, name)
				continue
			}
			code := ui.ExitFailed
			if c.path == "work diff" || c.path == "placement simulate" {
				code = ui.ExitUsage // 1 means that there are differences
			}
			require.Equal(t, code, got.code, "%s: %s", name, got.err)
			require.Empty(t, got.out, name)
			require.Regexp(t, `(?m)^error: `, got.err, name)
			require.Regexp(t, `context "?(hub|spoke)|kubeconfig`, got.err, name)
			require.Regexp(t, `(?m)^  cause: .+\n  fix:   .+$`, got.err, name)
			require.NotContains(t, got.err, "\x1b", name)
		}
	}
	require.Empty(t, s.hub.Changes())
	require.Empty(t, s.spoke.Changes())
}

// closed is a pipe whose reader has gone.
type closed struct{}

// Write fails as the write of a process does whose reader has gone.
func (closed) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// printsNothing are the commands that print nothing in the scene, or only once something has changed.
var printsNothing = []string{"addon status", "credential", "dev status", "hub backup", "work trace", "work wait", "report"}

// TestAResultThatNobodyReadsIsNoSuccess: a command whose result cannot be written fails and says so.
func TestAResultThatNobodyReadsIsNoSuccess(t *testing.T) {
	s := newScene(t)
	t.Chdir(t.TempDir())
	for _, c := range commands(t) {
		if c.LocalFlags().Lookup("dry-run") != nil || strings.HasPrefix(c.path, "proxy ") || slices.Contains(printsNothing, c.path) {
			continue
		}
		var errs bytes.Buffer
		streams := app.Streams{
			In: strings.NewReader(manifest), Out: closed{}, Err: &errs, Clock: clock.RealClock{},
			Getenv: func(n string) string { return s.env[n] },
		}
		code := app.Run(t.Context(), streams, append(append([]string{"kubectl-ocm"}, words(c.path)...), c.line...))
		require.Equal(t, ui.ExitFailed, code, "%s: %s", c.path, errs.String())
		require.Contains(t, errs.String(), "broken pipe", c.path)
	}
}
