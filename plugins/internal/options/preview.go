// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// externalDiff is the environment variable with the diff program, as for kubectl diff.
const externalDiff = "KUBECTL_EXTERNAL_DIFF"

// Preview prints the result of a dry run or diff, and reports whether the command was
// one. A diff with differences returns exit code 1 as an error.
func (c *Change) Preview(u *ui.UI, kind string, value any, changes []fleet.Change) (bool, error) {
	switch {
	case c.Diff:
		return true, c.showDiff(u, changes)
	case !c.Reads():
		return false, nil
	case c.Format.Machine():
		return true, u.Result(c.Format, kind, value, fleet.Names(changes))
	}
	for _, change := range changes {
		withheld := ""
		if change.Withheld() {
			withheld = "; not printed because it is secret"
		}
		u.Note("%s %s (%s dry run)%s", change.Name(), change.Action, c.DryRun, withheld)
	}
	if left := slices.DeleteFunc(slices.Clone(changes), func(c fleet.Change) bool { return c.Action == fleet.Deleted }); len(left) > 0 {
		changes = left // deletions are printed only when alone, so that the output can be applied
	}
	return true, u.Documents(fleet.Documents(changes))
}

// Diffed gives a failed diff the exit code 2, because 1 means that there are differences.
func (c *Change) Diffed(err error) error {
	var e *fleet.Error
	if c.Diff && errors.As(err, &e) && e.Kind == fleet.Failed {
		e.Kind = fleet.Usage
	}
	return err
}

// Objects prints a table of the objects if the format is wide.
func (c *Change) Objects(u *ui.UI, changes []fleet.Change) error {
	if c.Format != ui.Wide {
		return nil
	}
	t := ui.Table{Heads: []string{"NAMESPACE", "OBJECT", "ACTION"}}
	for _, change := range changes {
		t.Rows = append(t.Rows, []string{change.Object.GetNamespace(), change.Name(), string(change.Action)})
	}
	return u.Report(t, true)
}

// Plan prints what an operation will do to each object.
func (o *Output) Plan(u *ui.UI, kind string, value any, items []fleet.Planned) error {
	if o.Format.Machine() {
		return u.Result(o.Format, kind, value, fleet.PlannedNames(items))
	}
	t := ui.Table{Heads: []string{"FATE", "OBJECT", "NAMESPACE", "NOTE"}}
	for _, p := range items {
		t.Rows = append(t.Rows, []string{string(p.Fate), p.Name(), ui.Dash(p.Object.GetNamespace()), ui.Dash(p.Note)})
	}
	return u.Report(t, true)
}

// side is one object before and after the change.
type side struct{ name, before, after string }

func (c *Change) showDiff(u *ui.UI, changes []fleet.Change) error {
	var sides []side
	for _, change := range changes {
		before, liveErr := yamlText(change.Live)
		after, wantedErr := yamlText(change.Object)
		if err := cmp.Or(liveErr, wantedErr); err != nil {
			return err
		}
		if change.Action == fleet.Deleted {
			after = ""
		}
		if before != after {
			sides = append(sides, side{fileName(change), before, after})
		}
	}
	if len(sides) == 0 {
		return nil
	}
	if program := u.Streams.Getenv(externalDiff); program != "" {
		if err := runExternalDiff(u, program, sides); err != nil {
			return err
		}
		return ui.Exit(ui.ExitFailed)
	}
	for _, s := range sides {
		u.Say("%s", strings.TrimSuffix(udiff.Unified("live/"+s.name, "wanted/"+s.name, s.before, s.after), "\n"))
	}
	return ui.Exit(ui.ExitFailed)
}

func yamlText(u *unstructured.Unstructured) (string, error) {
	if u == nil {
		return "", nil
	}
	raw, err := yaml.Marshal(u.Object)
	if err != nil {
		return "", fmt.Errorf("encoding %s: %w", u.GetName(), err)
	}
	return string(raw), nil
}

func fileName(c fleet.Change) string {
	name := strings.Join([]string{c.On, c.Object.GetKind(), c.Object.GetNamespace(), c.Object.GetName()}, ".")
	return strings.NewReplacer("/", "_", ":", "_").Replace(strings.TrimPrefix(name, "."))
}

// runExternalDiff runs the user's diff program as kubectl does, with two folders that
// have one file per object. The folders are removed afterwards.
func runExternalDiff(u *ui.UI, program string, sides []side) error {
	dir, err := os.MkdirTemp("", "kubectl-ocm-diff-")
	if err != nil {
		return fmt.Errorf("making a folder for %s: %w", externalDiff, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, s := range sides {
		for sub, content := range map[string]string{"live": s.before, "wanted": s.after} {
			err := os.MkdirAll(filepath.Join(dir, sub), 0o700)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, sub, s.name), []byte(content), 0o600)
			}
			if err != nil {
				return fmt.Errorf("writing for %s: %w", externalDiff, err)
			}
		}
	}
	words := append(strings.Fields(program), filepath.Join(dir, "live"), filepath.Join(dir, "wanted"))
	cmd := exec.Command(words[0], words[1:]...) //nolint:gosec,noctx // the user chose the program
	cmd.Stdout, cmd.Stderr = u.Streams.Out, u.Streams.Err
	var ended *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &ended) {
		return fmt.Errorf("running %s: %w", externalDiff, err)
	}
	return nil
}
