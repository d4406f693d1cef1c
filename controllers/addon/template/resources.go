// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// anyKind stands for every kind in a containerID.
const anyKind = "*"

// requirement is the resource requests and limits of some containers.
type requirement struct {
	kind            string
	name, container *regexp.Regexp
	resources       corev1.ResourceRequirements
}

// fits reports whether the requirement applies to a container; the expressions match whole
// names.
func (q requirement) fits(kind, name, container string) bool {
	return (q.kind == anyKind || q.kind == kind) && q.name.MatchString(name) && q.container.MatchString(container)
}

// requirementsOf returns the requirements of a configuration.
func requirementsOf(c *addonv1alpha1.AddOnDeploymentConfig) ([]requirement, error) {
	var out []requirement
	for i, w := range c.Spec.ResourceRequirements {
		q, ok := parseContainerID(w.ContainerID)
		if !ok {
			return nil, &Error{
				Source: configSource(c), Field: fmt.Sprintf("spec.resourceRequirements[%d].containerID", i),
				Problem: "must be the plural of a kind or *, and two regular expressions or *, with colons between them",
				Fix:     "write for example deployments:my-agent:.+",
			}
		}
		q.resources = w.Resources
		out = append(out, q)
	}
	return out, nil
}

// expression returns the regular expression for names; * matches every name, as for kinds.
func expression(text string) string {
	if text == anyKind {
		return ".*"
	}
	return text
}

// parseContainerID splits kind:name:container. An expression may itself contain colons, as in
// (?:a|b): the split is at the first colon that leaves two valid expressions.
func parseContainerID(id string) (q requirement, ok bool) {
	kind, rest, _ := strings.Cut(id, ":")
	q.kind = kind
	known := kind == anyKind
	for _, k := range podKinds {
		known = known || k.resource == kind
	}
	for i := range len(rest) {
		if rest[i] != ':' || i == 0 || i == len(rest)-1 {
			continue
		}
		name, err := regexp.Compile("^(?:" + expression(rest[:i]) + ")$")
		container, err2 := regexp.Compile("^(?:" + expression(rest[i+1:]) + ")$")
		if err == nil && err2 == nil {
			q.name, q.container = name, container
			return q, known
		}
	}
	return q, false
}
