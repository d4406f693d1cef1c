// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/values"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// requirement is the resource requests and limits of the containers whose kind:name:container
// the expression matches.
type requirement struct {
	container *regexp.Regexp
	resources any
}

// requirementsOf returns the requirements of a configuration.
func requirementsOf(c *addonv1alpha1.AddOnDeploymentConfig) ([]requirement, error) {
	var out []requirement
	for i, r := range c.Spec.ResourceRequirements {
		q, ok := requirementOf(r)
		if !ok {
			return nil, &Error{
				Source: configSource(c), Field: fmt.Sprintf("spec.resourceRequirements[%d].containerID", i),
				Problem: "must be the plural of a kind or *, and two regular expressions or *, with colons between them",
				Fix:     "write for example deployments:my-agent:.+",
			}
		}
		out = append(out, q)
	}
	return out, nil
}

func requirementOf(r addonv1alpha1.ContainerResourceRequirements) (q requirement, ok bool) {
	kind, _, _ := strings.Cut(r.ContainerID, ":")
	known := kind == "*"
	for _, k := range podKinds {
		known = known || k.resource == kind
	}
	all, err := values.FromSpec(addonv1alpha1.AddOnDeploymentConfigSpec{ResourceRequirements: []addonv1alpha1.ContainerResourceRequirements{r}})
	if err != nil {
		return q, false
	}
	one := all[values.ResourceRequirements].([]any)[0].(map[string]any)
	q.resources = one[values.Resources]
	q.container, err = regexp.Compile(one[values.ContainerIDRegex].(string))
	return q, known && err == nil
}
