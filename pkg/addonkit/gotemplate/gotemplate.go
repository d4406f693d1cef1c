// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"text/template"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/values"
)

// endings are those of template files; other files are there for load.
var endings = []string{".yaml", ".yml", ".json"}

// Config of an add-on that is rendered from templates.
type Config struct {
	// Options are those of the add-on.
	Options addonkit.Options
	// Files holds the templates below Dir, in folders of any depth. Manifests come in the
	// order of the paths.
	Files fs.FS
	Dir   string
	// Values are evaluated for each instance, and later ones override earlier ones. Put
	// values.Fixed first for values that users provide and the templates require.
	Values []values.Func
	// Namespace returns where the agent is installed, usually
	// values.Configs.InstallNamespace. If it is nil or returns "", the instance decides.
	Namespace func(ctx context.Context, i addonkit.Instance) (string, error)
	// Hosted is for add-ons that also embed an addonkit.Hosted; it decides the value of
	// InstallMode. nil means never hosted.
	Hosted addonkit.Hosted
}

// AddOn implements addonkit.AddOn and addonkit.Placed.
type AddOn struct {
	config    Config
	templates []*template.Template
}

// New reads the templates. An error names the file and line that cannot be parsed, or the
// field of the configuration.
func New(c Config) (*AddOn, error) {
	if err := c.Options.Check(); err != nil {
		return nil, fmt.Errorf("options of the add-on: %w", err)
	}
	if c.Files == nil {
		return nil, errors.New("templates of the add-on: files: must be set; embed the folder of the manifests")
	}
	c.Dir = cmp.Or(c.Dir, ".")
	files, err := fs.Sub(c.Files, c.Dir)
	if err != nil {
		return nil, fmt.Errorf("reading the templates of the add-on: %w", err)
	}
	a := &AddOn{config: c}
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains(endings, path.Ext(name)) {
			return err
		}
		t, err := compile(files, name)
		if err != nil {
			return err
		}
		a.templates = append(a.templates, t)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the templates of the add-on: %w", err)
	}
	if len(a.templates) == 0 {
		return nil, fmt.Errorf("templates of the add-on: folder %s has no file that ends in %v; put the manifests there", c.Dir, endings)
	}
	return a, nil
}

// compile parses one template and adds a check to what it prints.
func compile(files fs.FS, name string) (*template.Template, error) {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	t, err := template.New(name).Option("missingkey=error").Funcs(functions(files)).Parse(string(text))
	if err != nil {
		return nil, err
	}
	for _, part := range t.Templates() {
		checkPrinted(part.Root)
	}
	return t, nil
}

// Options returns those of the configuration.
func (a *AddOn) Options() addonkit.Options { return a.config.Options }

// InstallNamespace returns what the configuration says.
func (a *AddOn) InstallNamespace(ctx context.Context, i addonkit.Instance) (string, error) {
	if a.config.Namespace == nil {
		return "", nil
	}
	return a.config.Namespace(ctx, i)
}

// Manifests renders the templates with the values of the instance; the namespace among
// these is where credentials are put. An error names the file but quotes no value.
func (a *AddOn) Manifests(ctx context.Context, i addonkit.Instance) ([]runtime.Object, error) {
	namespace, hosted, err := values.Place(ctx, i, a.config.Namespace, a.config.Hosted)
	if err != nil {
		return nil, err
	}
	filled, err := values.All(ctx, i, values.Defaults(i), values.BuiltIn(i, namespace, hosted), a.config.Values...)
	if err != nil {
		return nil, err
	}
	var out []runtime.Object
	for _, t := range a.templates {
		var text bytes.Buffer
		if err := t.Execute(&text, filled); err != nil {
			return nil, err
		}
		objects, err := addonkit.ReadYAML(&text)
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", t.Name(), err)
		}
		out = append(out, objects...)
	}
	return out, nil
}
