// SPDX-License-Identifier: Apache-2.0

package template

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// Variables that the hub sets.
const (
	// variableHubKubeconfig is the path of the hub kubeconfig. A configuration may set
	// another one.
	variableHubKubeconfig = "HUB_KUBECONFIG"
	// variableClusterName is the name of the managed cluster.
	variableClusterName = "CLUSTER_NAME"
	// variableInstallNamespace is the namespace that a configuration sets; without one the
	// variable does not exist.
	variableInstallNamespace = "INSTALL_NAMESPACE"
)

const (
	opening, closing = "{{", "}}"
	// maxQuoted is the most text of a manifest in a message.
	maxQuoted = 64
)

// variable is a name and a value.
type variable struct{ name, value string }

// known holds the values of variables on one cluster.
type known struct {
	// all are the variables that a manifest may use.
	all map[string]string
	// env are the variables that containers get, in order.
	env []variable
}

// valuesOf returns the variables: defaults, overridden by the configurations, overridden by
// what the hub itself sets.
func valuesOf(in Input, set settings) known {
	v := known{all: map[string]string{}}
	var shown []string
	if len(in.Template.Spec.Registration) > 0 {
		v.all[variableHubKubeconfig] = hubKubeconfigFolder + "/kubeconfig"
		shown = append(shown, variableHubKubeconfig)
	}
	maps.Copy(v.all, set.variables)
	v.all[variableClusterName] = in.Cluster.Name
	shown = append(shown, variableClusterName)
	if set.namespace != "" {
		v.all[variableInstallNamespace] = set.namespace
		shown = append(shown, variableInstallNamespace)
	}
	for _, name := range shown {
		v.env = append(v.env, variable{name, v.all[name]})
	}
	return v
}

// readManifests reads the manifests of the template with their variables replaced.
func (r *render) readManifests() error {
	r.values = valuesOf(r.in, r.set)
	manifests := r.in.Template.Spec.AgentSpec.Workload.Manifests
	if len(manifests) == 0 {
		return &Error{
			Source: source(r.in.Template), Field: "spec.agentSpec.workload.manifests", Problem: "must not be empty",
			Fix: "put the objects of the agent there",
		}
	}
	for i := range manifests {
		o, err := r.readOne(i, manifests[i])
		if err != nil {
			return err
		}
		r.objects = append(r.objects, o)
	}
	return nil
}

func (r *render) readOne(index int, m workv1.Manifest) (object, error) {
	o := object{at: place(index, nil)}
	raw := m.Raw
	if raw == nil && m.Object != nil {
		var err error
		if raw, err = json.Marshal(m.Object); err != nil {
			return o, r.fault(o, "", "the manifest has no form in JSON", "correct it")
		}
	}
	u, err := manifest.Decode(raw)
	if err != nil {
		o.at = place(index, guess(raw))
		return o, r.misread(o, err)
	}
	o.Unstructured, o.at = u, place(index, u)
	if !bytes.Contains(raw, []byte(opening)) {
		return o, nil
	}
	s := &substitution{values: r.values.all, left: manifest.MaxBytes}
	if err := s.entries(u.Object); err != nil {
		return o, r.misread(o, err)
	}
	for _, tag := range s.unknown {
		r.warnUnknown(o.at, tag)
	}
	// Names that result from values are checked like literal ones.
	if raw, err = json.Marshal(u.Object); err != nil {
		return o, r.fault(o, "", "the manifest has no form in JSON", "correct it")
	}
	if u, err = manifest.Decode(raw); err != nil {
		return o, r.misread(o, err)
	}
	o.Unstructured, o.at = u, place(index, u)
	return o, nil
}

// guess reads kind and name of a refused manifest for the message.
func guess(raw []byte) *unstructured.Unstructured {
	var content map[string]any
	if len(raw) > manifest.MaxBytes || manifest.Depth(raw) > manifest.MaxDepth || json.Unmarshal(raw, &content) != nil {
		return nil
	}
	return &unstructured.Unstructured{Object: content}
}

// misread adds the location of a manifest to an error about it.
func (r *render) misread(o object, err error) error {
	var at *manifest.Error
	if !errors.As(err, &at) {
		return r.fault(o, "", err.Error(), "correct the manifest")
	}
	return r.fault(o, at.Field, at.Problem, at.Fix)
}

// warnUnknown warns about a variable without a value.
func (r *render) warnUnknown(at, tag string) {
	name := strings.TrimSpace(tag)
	fix := "set it in the customizedVariables of an AddOnDeploymentConfig"
	if _, ok := r.values.all[name]; ok {
		fix = "write " + opening + name + closing + ", without spaces"
	} else if name == variableInstallNamespace {
		fix = "set the agentInstallNamespace of an AddOnDeploymentConfig"
	}
	tag = excerpt.Of(tag, maxQuoted)
	r.warn("%s: %s: %q has no value and is replaced by nothing; %s", source(r.in.Template), at, opening+tag+closing, fix)
}

// substitution replaces variables in one manifest.
type substitution struct {
	values map[string]string
	// unknown lists the names without a value, in order of their first use.
	unknown []string
	// left is how many more bytes the texts may take.
	left int
}

// replaceTree replaces variables in all texts below a value, including keys. Maps and lists
// are changed in place. manifest.Decode has limited the depth.
func (s *substitution) replaceTree(value any) (any, error) {
	switch v := value.(type) {
	case string:
		return s.replaceText(v)
	case []any:
		for i := range v {
			var err error
			if v[i], err = s.replaceTree(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		return v, s.entries(v)
	}
	return value, nil
}

func (s *substitution) entries(m map[string]any) error {
	made := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		value, err := s.replaceTree(m[key])
		if err != nil {
			return err
		}
		name, err := s.replaceText(key)
		if err != nil {
			return err
		}
		if _, taken := made[name]; taken {
			return &manifest.Error{
				Field:   excerpt.Of(key, maxQuoted),
				Problem: fmt.Sprintf("becomes %q, which already exists beside it", excerpt.Of(name, maxQuoted)),
				Fix:     "use variables whose values differ",
			}
		}
		made[name] = value
	}
	clear(m)
	maps.Copy(m, made)
	return nil
}

// replaceText replaces the variables of one text, once: variables in a value are not
// replaced.
func (s *substitution) replaceText(t string) (string, error) {
	var out strings.Builder
	rest := t
	for {
		before, after, found := strings.Cut(rest, opening)
		tag, behind, closed := strings.Cut(after, closing)
		if !found || !closed {
			out.WriteString(rest)
			break
		}
		value, known := s.values[tag]
		if !known && !slices.Contains(s.unknown, tag) {
			s.unknown = append(s.unknown, tag)
		}
		out.WriteString(before)
		out.WriteString(value)
		rest = behind
		if out.Len() > s.left {
			break
		}
	}
	if s.left -= out.Len(); s.left < 0 {
		return "", &manifest.Error{
			Problem: fmt.Sprintf("with its variables replaced it takes more than the limit of %d bytes", manifest.MaxBytes),
			Fix:     "use shorter values",
		}
	}
	return out.String(), nil
}
