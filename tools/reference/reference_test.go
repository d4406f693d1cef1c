// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/app"
)

func TestPagesAreUpToDate(t *testing.T) {
	wanted, err := pages(filepath.Join("..", ".."))
	require.NoError(t, err)
	for file, text := range wanted {
		have, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, text, string(have), "%s is out of date: make generate", file)
	}
}

func TestEveryCommandHasItsSection(t *testing.T) {
	wanted, err := pages(filepath.Join("..", ".."))
	require.NoError(t, err)
	var all strings.Builder
	for _, text := range wanted {
		all.WriteString(text)
	}
	total := 0
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		for _, c := range documented(c) {
			total++
			require.Contains(t, all.String(), "# "+c.CommandPath()+"\n")
			require.Contains(t, all.String(), "| ["+c.CommandPath()+"](")
			look(c)
		}
	}
	look(app.Documented())
	require.Greater(t, total, 30)
}

func TestPagesOfCommandsThatAreGoneAreRemoved(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "docs", "cli"), 0o755))
	for _, name := range []string{"README.md", "gone.md"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, "docs", "cli", name), []byte("by hand\n"), 0o644))
	}
	require.NoError(t, write(root))
	require.NoFileExists(t, filepath.Join(root, "docs", "cli", "gone.md"))
	require.FileExists(t, filepath.Join(root, "docs", "cli", "join.md"))
	text, err := os.ReadFile(filepath.Join(root, "docs", "cli", "README.md"))
	require.NoError(t, err)
	require.Equal(t, "by hand\n", string(text))
}

func TestFillRefusesWhatItDoesNotKnow(t *testing.T) {
	for page, message := range map[string]string{
		"<!-- begin banana -->\n<!-- end -->\n":                                                        "no generated part has that name",
		"<!-- begin commands -->\n":                                                                    "a part has no end",
		"<!-- begin kind pods -->\n<!-- end -->\n":                                                     "reading custom resource definition pods",
		"<!-- begin fields placements.cluster.open-cluster-management.io v7 -->\n<!-- end -->\n":       "there is no such version",
		"<!-- begin fields placementss.cluster.open-cluster-management.io v1beta1 -->\n<!-- end -->\n": "reading custom resource definition",
	} {
		_, err := fill(page, app.Documented())
		require.ErrorContains(t, err, message)
	}
}

func TestFlagsSayWhatTheyTake(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.StringP("output", "o", "", "json|yaml")
	flags.Bool("wait", true, "wait")
	flags.String("dry-run", "none", "print")
	flags.Lookup("dry-run").NoOptDefVal = "client"
	flags.Bool("secret", false, "hidden")
	flags.Lookup("secret").Hidden = true
	require.Equal(t, `| flag | default | meaning |
|---|---|---|
| `+"`--dry-run[=client]` | `none`"+` | print |
| `+"`-o`, `--output string`"+` |  | json\|yaml |
| `+"`--wait` | `true`"+` | wait |
`, flagTable(flags))
}

func TestHelpBecomesMarkdown(t *testing.T) {
	require.Equal(t, "Run `kubectl ocm join x --accept` with `--force` (`-n`) for &lt;NAME> or \\*: a-b.",
		description(`Run "kubectl ocm join x --accept" with --force (-n) for <NAME> or *: a-b.`))
}

func TestFieldsSayWhatIsRefused(t *testing.T) {
	one, many := int64(1), int64(63)
	props := func(s apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaPropsOrArray {
		return &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &s}
	}
	var rows [][]string
	field("spec", apiextensionsv1.JSONSchemaProps{Type: "object", Required: []string{"name"}, Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"name": {Type: "string", MinLength: &one, MaxLength: &many, Pattern: "^a|b$", Description: "name of <it>"},
		"mode": {
			Type: "string",
			Enum: []apiextensionsv1.JSON{{
				Raw: []byte(`"On"`),
			}, {
				Raw: []byte(`"Off"`),
			}},
			Default: &apiextensionsv1.JSON{Raw: []byte(`"On"`)},
		},
		"list": {Type: "array", XListMapKeys: []string{"key"}, Items: props(apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"key": {Type: "string"}}})},
		"when": {Type: "string", Format: "date-time"},
		"port": {
			XIntOrString: true,
			XValidations: apiextensionsv1.ValidationRules{{Rule: "self > 0"}, {Rule: "x", Message: "must be so"}},
		},
		"map": {
			Type:                 "object",
			AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}},
		},
		"free": {Type: "object"},
		"where": {
			Type:       "object",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"matchLabels": {}, "matchExpressions": {}},
		},
		"more": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"a": {}}},
	}}, true, []string{"spec.more"}, &rows)
	require.Equal(t, [][]string{
		{"`spec`", "`object`", "", "required", ""},
		{"`spec.free`", "`any object`", "", "", ""},
		{"`spec.list`", "`[]object`", "", "unique by key", ""},
		{"`spec.list[].key`", "`string`", "", "", ""},
		{"`spec.map`", "`map[string]string`", "", "", ""},
		{"`spec.mode`", "`string`", "`\"On\"`", "one of `On`, `Off`", ""},
		{"`spec.more`", "`object`", "", "", ""},
		{
			"`spec.name`",
			"`string`",
			"",
			"required; matches `^a|b$`; not empty; at most 63 characters",
			"Name of &lt;it>",
		},
		{"`spec.port`", "`int or string`", "", "`self > 0`; must be so", ""},
		{"`spec.when`", "`time`", "", "", ""},
		{"`spec.where`", "`LabelSelector`", "", "", ""},
	}, rows)
}

func TestMeaningDoesNotRepeatTheName(t *testing.T) {
	said := func(name, text string, values ...string) string {
		s := apiextensionsv1.JSONSchemaProps{Description: text}
		for _, v := range values {
			s.Enum = append(s.Enum, apiextensionsv1.JSON{Raw: []byte(`"` + v + `"`)})
		}
		return meaning(name, s, true)
	}
	for text, want := range map[string]string{
		"name is true when\nso. The default is 60.": "True when so.",
		"name lists what. The default is a. More.":  "Lists what. The default is a. More.",
		"name of the set.":                          "Name of the set.",
		"says it, name.":                            "Says it, name.",
		"":                                          "",
	} {
		require.Equal(t, want, said("name", text))
	}
	require.Equal(t, "imagePull of it.", said("imagePull", "imagePull of it."))
	require.Equal(t, "`csr` for certificates, or `token` for a token.", said("type", "type is csr for certificates, or token for a token.", "csr", "token"))
}

// TestEveryCommandHasAnExample: users read the example of a help text first; its commands
// and flags must exist.
func TestEveryCommandHasAnExample(t *testing.T) {
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		for _, c := range documented(c) {
			require.True(t, c.HasAvailableSubCommands() || c.HasExample(), "%s has no example", c.CommandPath())
			for line := range strings.Lines(c.Example) {
				parses(t, c.CommandPath(), line)
			}
			look(c)
		}
	}
	look(app.Documented())
}

// parses requires an example to be a valid command line of a command.
func parses(t *testing.T, path, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " # ")
	line, _, _ = strings.Cut(line, " |")
	words, ours := strings.CutPrefix(strings.TrimSpace(line), "kubectl ocm ")
	if !ours {
		require.Contains(t, line, "kubectl-ocm completion", "%s: %s", path, line)
		return
	}
	found, rest, err := app.Documented().Find(strings.Fields(words))
	require.NoError(t, err, line)
	require.Equal(t, path, found.CommandPath(), line)
	require.NoError(t, found.ParseFlags(rest), line)
}
