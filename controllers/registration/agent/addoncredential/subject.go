// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

const (
	// maxName bounds a user, group or unit in bytes; the longest default user, with names of
	// 63 characters, has 242.
	maxName = 256
	// maxGroups bounds the number of groups, and of units.
	maxGroups = 16
	// reserved is the prefix of users and groups with a meaning in Kubernetes and Open
	// Cluster Management.
	reserved = "system:"
	// authenticated is the group of all authenticated users; hubs of 2025 and before name it.
	authenticated = "system:authenticated"
)

// subjectOf returns the subject of the certificate to request, or why none is requested. The
// agent sends the request under its own name, so it requests nothing that this add-on of this
// cluster cannot be meant to have: within "system:" only its own identities, and never a
// group of an agent.
func subjectOf(cluster, addOn string, kubeClient bool, in addonv1alpha1.Subject) (pkix.Name, error) {
	own := identity.AddOn{Cluster: cluster, Name: addOn}
	out := pkix.Name{CommonName: in.User, Organization: slices.Clone(in.Groups)}
	if out.CommonName == "" {
		out.CommonName = own.User(addOn)
	}
	if !kubeClient {
		out.OrganizationalUnit = slices.Clone(in.OrganizationUnits)
	} else if len(out.Organization) == 0 {
		out.Organization = []string{own.Group()}
	}
	if err := checkText("subject.user", out.CommonName); err != nil {
		return pkix.Name{}, err
	}
	if u := out.CommonName; strings.HasPrefix(u, reserved) && !strings.HasPrefix(u, own.Group()+":") {
		return pkix.Name{}, fmt.Errorf("subject.user %q: a user that starts with system: must start with %q", u, own.Group()+":")
	}
	for field, values := range map[string][]string{"subject.groups": out.Organization, "subject.organizationUnits": out.OrganizationalUnit} {
		if len(values) > maxGroups {
			return pkix.Name{}, fmt.Errorf("%s: %d entries, at most %d are asked for", field, len(values), maxGroups)
		}
		for _, v := range values {
			if err := checkText(field, v); err != nil {
				return pkix.Name{}, err
			}
			if v == "" {
				return pkix.Name{}, fmt.Errorf("%s: an entry is empty", field)
			}
		}
	}
	// Their order has no meaning, so a change of order is not a change.
	slices.Sort(out.Organization)
	slices.Sort(out.OrganizationalUnit)
	for _, g := range out.Organization {
		if err := checkGroup(own, g); err != nil {
			return pkix.Name{}, err
		}
	}
	return out, nil
}

func checkGroup(who identity.AddOn, group string) error {
	own := append(who.Groups(), authenticated)
	switch {
	case slices.Contains(own, group):
		return nil
	case strings.HasPrefix(group, reserved):
		return fmt.Errorf("subject.groups %q: of the groups that start with system: only %s may be asked for", group, strings.Join(own, ", "))
	case strings.HasPrefix(group, clusterv1.GroupPrefixEKS):
		return fmt.Errorf("subject.groups %q: the groups that start with %s are those of agents", group, clusterv1.GroupPrefixEKS)
	}
	return nil
}

// checkText rejects text that cannot be displayed or compared reliably.
func checkText(field, s string) error {
	if len(s) > maxName {
		return fmt.Errorf("%s: %d bytes, at most %d are asked for", field, len(s), maxName)
	}
	odd := func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }
	if strings.ContainsFunc(s, odd) || strings.TrimSpace(s) != s {
		return fmt.Errorf("%s %q: must be printable and not begin or end with a space", field, s)
	}
	return nil
}

// sameSubject compares two subjects; the order of values has no meaning.
func sameSubject(a, b pkix.Name) bool {
	same := func(x, y []string) bool {
		return slices.Equal(slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y)))
	}
	return a.CommonName == b.CommonName && same(a.Organization, b.Organization) && same(a.OrganizationalUnit, b.OrganizationalUnit)
}
