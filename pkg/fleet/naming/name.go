// SPDX-License-Identifier: Apache-2.0

package naming

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Check returns why a managed cluster cannot have this name. The name is also that of its
// namespace on the hub.
func Check(name string) error {
	if name == "" {
		return fleet.Misuse("the cluster has no name", "", fleet.Advice("give it one: a DNS label such as cluster1"))
	}
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fleet.Misuse(fmt.Sprintf("%q cannot be the name of a cluster", name), "it is also the name of the cluster's namespace on the hub",
			fleet.Advice("use lower-case letters, digits and '-', at most 63 characters, for example "+safeName(name)))
	}
	if identity.Reserved(name) {
		return fleet.Misuse(fmt.Sprintf("%q cannot be the name of a cluster", name),
			"the name is reserved: the cluster's namespace or rights on the hub would collide with those of others",
			fleet.Advice("choose a name other than default, registration, work, managed-clusters "+
				"and does not begin with kube-, openshift- or open-cluster-management"))
	}
	return nil
}

// CheckValue returns why an object of a kind cannot have a name that is also a label value.
func CheckValue(name, kind, example string) error {
	problems := validation.IsDNS1123Subdomain(name)
	if len(problems) == 0 {
		problems = validation.IsValidLabelValue(name)
	}
	if len(problems) > 0 {
		return fleet.Misuse(fmt.Sprintf("%q cannot be the name of %s", name, kind), problems[0], fleet.Advice("for example "+example))
	}
	return nil
}

var unfit = regexp.MustCompile("[^a-z0-9]+")

// safeName turns any text, such as the name of a context, into a name that Check accepts.
func safeName(text string) string {
	name := strings.Trim(unfit.ReplaceAllString(strings.ToLower(text), "-"), "-")
	name = strings.Trim(name[:min(len(name), validation.DNS1123LabelMaxLength)], "-")
	if name == "" || identity.Reserved(name) {
		name = strings.TrimSuffix("cluster-"+name, "-")
	}
	return strings.Trim(name[:min(len(name), validation.DNS1123LabelMaxLength)], "-")
}
