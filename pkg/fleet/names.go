// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// reservedNames are default, which is somebody else's namespace, and the names
// by which a cluster's rights would be those of all clusters.
var reservedNames = []string{"default", "registration", "work", "managed-clusters"}

// reservedPrefixes begin the names of namespaces that belong to Kubernetes, to
// its distributions, or to us; a cluster of such a name would get rights in one.
var reservedPrefixes = []string{"kube-", "openshift-", "open-cluster-management"}

// CheckName tells why a managed cluster cannot have this name. The name is also
// that of its namespace on the hub (registration.md 4.2).
func CheckName(name string) error {
	if name == "" {
		return usage("the cluster has no name", "", "give it one: a DNS label such as cluster1")
	}
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return usage(fmt.Sprintf("%q cannot be the name of a cluster", name), problems[0], "use lower-case letters, digits and '-', at most 63 characters, for example "+SafeName(name))
	}
	if reserved(name) {
		return usage(fmt.Sprintf("%q cannot be the name of a cluster", name), "the name is reserved: the cluster's namespace or rights on the hub would be some that belong to others",
			"choose a name that is none of "+strings.Join(reservedNames, ", ")+" and does not begin with kube-, openshift- or open-cluster-management")
	}
	return nil
}

func reserved(name string) bool {
	if slices.Contains(reservedNames, name) {
		return true
	}
	for _, prefix := range reservedPrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// SafeName turns any text, such as the name of a context, into a name that
// CheckName takes.
func SafeName(text string) string {
	var out strings.Builder
	for _, r := range strings.ToLower(text) {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			out.WriteRune(r)
		} else if s := out.String(); s != "" && !strings.HasSuffix(s, "-") {
			out.WriteByte('-')
		}
	}
	name := out.String()
	if len(name) > 63 {
		name = name[:63]
	}
	name = strings.Trim(name, "-")
	if name == "" || reserved(name) {
		name = strings.TrimSuffix("cluster-"+name, "-")
	}
	return strings.Trim(name[:min(len(name), 63)], "-")
}
