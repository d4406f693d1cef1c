// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"

	"helm.sh/helm/v4/pkg/chart/common"
	renderutil "helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/values"
)

// hookAnnotation marks what Helm runs at certain times, testHooks what only "helm test"
// runs.
const hookAnnotation = "helm.sh/hook"

var testHooks = []string{"test", "test-success", "test-failure"}

// Config of an add-on that is rendered from a chart.
type Config struct {
	// Options are those of the add-on.
	Options addonkit.Options
	// Files holds the chart in Dir, the folder of Chart.yaml. Embed it as "all:chart";
	// otherwise files like _helpers.tpl are left out.
	Files fs.FS
	Dir   string
	// Values are evaluated for each instance. Later ones override earlier ones, and all
	// override those of the chart.
	Values []values.Func
	// Namespace returns where the agent is installed, usually
	// values.Configs.InstallNamespace. If it is nil or returns "", the instance decides.
	Namespace func(ctx context.Context, i addonkit.Instance) (string, error)
	// Hosted is for add-ons that also embed an addonkit.Hosted; it decides the value of
	// installMode. nil means never hosted.
	Hosted addonkit.Hosted
	// Strict refuses templates that use a value which does not exist.
	Strict bool
}

// AddOn implements addonkit.AddOn and addonkit.Placed.
type AddOn struct {
	config Config
	files  []*archive.BufferedFile
}

// New reads the chart. An error names what is wrong with it, or the field of the
// configuration.
func New(c Config) (*AddOn, error) {
	if err := c.Options.Check(); err != nil {
		return nil, fmt.Errorf("options of the add-on: %w", err)
	}
	if c.Files == nil {
		return nil, errors.New("chart of the add-on: files: must be set; embed the folder of Chart.yaml")
	}
	c.Dir = cmp.Or(c.Dir, ".")
	a := &AddOn{config: c}
	dir, err := fs.Sub(c.Files, c.Dir)
	if err != nil {
		return nil, fmt.Errorf("reading the chart of the add-on: %w", err)
	}
	err = fs.WalkDir(dir, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(dir, name)
		a.files = append(a.files, &archive.BufferedFile{Name: name, Data: content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chart of the add-on: %w", err)
	}
	if _, err := a.load(); err != nil {
		return nil, fmt.Errorf("chart of the add-on: folder %s: %w", c.Dir, err)
	}
	return a, nil
}

// load returns a fresh copy of the chart, because rendering changes its dependencies.
func (a *AddOn) load() (*chart.Chart, error) {
	out, err := loader.LoadFiles(a.files)
	if err != nil {
		return nil, err
	}
	return out, out.Validate()
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

// Manifests renders the chart with the values of the instance, in the namespace that
// credentials are put into. An error names the template, or what the cluster or the
// configuration lacks.
func (a *AddOn) Manifests(ctx context.Context, i addonkit.Instance) ([]runtime.Object, error) {
	namespace, hosted, err := values.Place(ctx, i, a.config.Namespace, a.config.Hosted)
	if err != nil {
		return nil, err
	}
	filled, err := values.All(ctx, i, camelCase(values.Defaults(i)), camelCase(values.BuiltIn(i, namespace, hosted)), a.config.Values...)
	if err != nil {
		return nil, err
	}
	c, err := a.load()
	if err != nil {
		return nil, err
	}
	capabilities, err := capabilitiesOf(c, i)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(c, filled); err != nil {
		return nil, fmt.Errorf("chart %s: dependencies: %w", c.Name(), err)
	}
	release := common.ReleaseOptions{Name: i.AddOn.Name, Namespace: namespace, Revision: 1, IsInstall: true}
	top, err := renderutil.ToRenderValues(c, filled, release, capabilities)
	if err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Name(), err)
	}
	rendered, err := engine.Engine{Strict: a.config.Strict}.RenderWithContext(ctx, c, top)
	if err != nil {
		return nil, err
	}
	return objects(c, rendered)
}

// capabilitiesOf returns those of the managed cluster, which must fit the chart.
func capabilitiesOf(c *chart.Chart, i addonkit.Instance) (*common.Capabilities, error) {
	version := ""
	if i.Cluster != nil {
		version = i.Cluster.Status.Version.Kubernetes
	}
	if version == "" {
		return nil, fmt.Errorf("managed cluster %s has not reported its Kubernetes version yet; its agent does so once it runs", i.AddOn.Namespace)
	}
	parsed, err := common.ParseKubeVersion(version)
	if err != nil {
		return nil, fmt.Errorf("managed cluster %s: status.version.kubernetes: %q is not a version", i.AddOn.Namespace, version)
	}
	if wanted := c.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, parsed.String()) {
		return nil, fmt.Errorf(
			"chart %s needs Kubernetes %s, and managed cluster %s has %s; change the cluster, or kubeVersion in Chart.yaml",
			c.Name(), wanted, i.AddOn.Namespace, version,
		)
	}
	out := common.DefaultCapabilities.Copy()
	out.KubeVersion = *parsed
	return out, nil
}

// objects decodes what was rendered, after the chart's custom resource definitions.
func objects(c *chart.Chart, rendered map[string]string) ([]runtime.Object, error) {
	var out []runtime.Object
	for _, crd := range c.CRDObjects() {
		definitions, err := addonkit.ReadYAML(strings.NewReader(string(crd.File.Data)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", crd.Filename, err)
		}
		out = append(out, definitions...)
	}
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if base := path.Base(name); base == "NOTES.txt" || strings.HasPrefix(base, "_") {
			continue
		}
		found, err := addonkit.ReadYAML(strings.NewReader(rendered[name]))
		if err != nil {
			return nil, fmt.Errorf("template %s: %w", name, err)
		}
		for _, o := range found {
			keep, err := manifest(o)
			if err != nil {
				return nil, fmt.Errorf("template %s: %w", name, err)
			}
			if keep {
				out = append(out, o)
			}
		}
	}
	return out, nil
}

// manifest reports whether an object belongs to the add-on; a test hook does not, and any
// other hook is an error.
func manifest(o runtime.Object) (bool, error) {
	u := o.(*unstructured.Unstructured) // as ReadYAML returns
	hooks := u.GetAnnotations()[hookAnnotation]
	if hooks == "" {
		return true, nil
	}
	for hook := range strings.SplitSeq(hooks, ",") {
		if !slices.Contains(testHooks, strings.TrimSpace(hook)) {
			return false, fmt.Errorf("%s %s is the hook %q of Helm, which is not supported; remove the annotation %s, or, "+
				"to run it before the add-on is removed, use addon.open-cluster-management.io/addon-pre-delete instead",
				u.GetKind(), u.GetName(), hook, hookAnnotation)
		}
	}
	return false, nil
}

// camelCase returns the values under the names that charts use.
func camelCase(in map[string]any) map[string]any {
	out := make(map[string]any, len(in))
	for name, value := range in {
		letters := []rune(name)
		letters[0] = unicode.ToLower(letters[0])
		out[string(letters)] = value
	}
	return out
}
