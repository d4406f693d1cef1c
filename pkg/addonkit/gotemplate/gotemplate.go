// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"text/template"

	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/registration"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/values"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/manifest"
)

// endings are those of the files that are templates; others are there for load.
var endings = []string{".yaml", ".yml", ".json"}

// Config of an add-on that is made of templates.
type Config struct {
	// Options are those of the add-on.
	Options addonkit.Options
	// Files holds the templates below Dir, in folders of any depth. Manifests come in
	// the order of the paths.
	Files fs.FS
	Dir   string
	// Values are asked for each instance, the later ones strongest. What has to exist
	// for the templates and is given by users stands first, by values.Fixed.
	Values []values.Func
	// Namespace says where the agent is installed, mostly as
	// values.Configs.InstallNamespace; nil and an empty answer leave it to the instance.
	Namespace func(ctx context.Context, i addonkit.Instance) (string, error)
	// Hosted is set by add-ons that embed it, too; nil is never hosted. It says which
	// value InstallMode has.
	Hosted addonkit.Hosted
}

// AddOn has the methods of addonkit.AddOn and addonkit.Placed.
type AddOn struct {
	config    Config
	templates []*template.Template
}

// New reads the templates. An error names the file and line that cannot be parsed, or
// the field of the configuration.
func New(c Config) (*AddOn, error) {
	if err := c.Options.Check(); err != nil {
		return nil, fmt.Errorf("options of the add-on: %w", err)
	}
	if c.Files == nil {
		return nil, errors.New("templates of the add-on: files: must be set; embed the folder of the manifests")
	}
	if c.Dir == "" {
		c.Dir = "."
	}
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

// compile reads one template, and puts a check behind what it prints.
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

// Options are those of the configuration.
func (a *AddOn) Options() addonkit.Options { return a.config.Options }

// InstallNamespace is what the configuration says.
func (a *AddOn) InstallNamespace(ctx context.Context, i addonkit.Instance) (string, error) {
	if a.config.Namespace == nil {
		return "", nil
	}
	return a.config.Namespace(ctx, i)
}

// Manifests are what the templates make of the values of the instance; the namespace
// among these is the one that credentials are put into. An error names the file, and
// no value.
func (a *AddOn) Manifests(ctx context.Context, i addonkit.Instance) ([]runtime.Object, error) {
	own, err := a.InstallNamespace(ctx, i)
	if err != nil {
		return nil, err
	}
	hosted := false
	if a.config.Hosted != nil {
		_, hosted = a.config.Hosted.HostingCluster(i)
	}
	filled, err := values.All(ctx, i, values.BuiltIn(i, registration.InstallNamespace(i.AddOn, own), hosted), a.config.Values...)
	if err != nil {
		return nil, err
	}
	var out []runtime.Object
	for _, t := range a.templates {
		var text bytes.Buffer
		if err := t.Execute(&text, filled); err != nil {
			return nil, err
		}
		objects, err := read(&text)
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", t.Name(), err)
		}
		out = append(out, objects...)
	}
	return out, nil
}

// read takes a rendered file apart.
func read(text io.Reader) ([]runtime.Object, error) {
	var out []runtime.Object
	documents := utilyaml.NewYAMLReader(bufio.NewReader(text))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("splitting it into objects: %w", err)
		}
		raw, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("object %d is no YAML as it is rendered; look at its indentation, and print values by json or quote", number)
		}
		if string(raw) == "null" {
			continue
		}
		u, err := manifest.Decode(raw)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", number, err)
		}
		out = append(out, u)
	}
}
