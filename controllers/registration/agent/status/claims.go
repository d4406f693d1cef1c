// SPDX-License-Identifier: Apache-2.0

package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Bounds of what is reported. One claim beyond them would make the API server reject the
// whole status, including availability.
const (
	// maxValue is the longest value of a claim, in characters.
	maxValue = 1024
	// maxName is the longest name of a claim, in characters.
	maxName = 253
	// maxClaims is the maximum total size of names and values, in bytes; etcd accepts 1.5 MiB
	// for the whole object, and the hub keeps all its clusters in memory.
	maxClaims = 256 << 10
	// maxNamed is how many omitted claims are named.
	maxNamed = 5
)

var (
	claimsResource     = schema.GroupVersionResource{Group: clusterv1.GroupVersion.Group, Version: "v1alpha1", Resource: "clusterclaims"}
	propertiesResource = schema.GroupVersionResource{Group: "about.k8s.io", Version: "v1alpha1", Resource: "clusterproperties"}
)

// Claim is what is kept of a ClusterClaim or ClusterProperty.
type Claim struct {
	Name, Value string
	// TooLong is true when the value cannot be reported; it is not kept.
	TooLong bool
}

// NewClaims makes the collection of ClusterClaims that may be reported.
func NewClaims(client dynamic.Interface, log logr.Logger) *watch.Collection[Claim] {
	return watch.New(claimOptions(client, claimsResource, log))
}

// NewProperties makes the collection of ClusterProperties that may be reported. Their
// definition belongs to another project and may be absent.
func NewProperties(client dynamic.Interface, log logr.Logger) *watch.Optional[Claim] {
	return watch.NewOptional(claimOptions(client, propertiesResource, log))
}

func claimOptions(client dynamic.Interface, resource schema.GroupVersionResource, log logr.Logger) watch.Options[Claim] {
	return watch.Options[Claim]{
		Client: client, Resource: resource, Log: log, Keep: keepClaim,
		Same: func(before, now Claim) bool { return before == now },
	}
}

func keepClaim(u *unstructured.Unstructured) (Claim, bool) {
	if _, hidden := u.GetLabels()[clusterv1alpha1.LabelSpokeOnly]; hidden {
		return Claim{}, false
	}
	value, _, _ := unstructured.NestedString(u.Object, "spec", "value")
	if utf8.RuneCountInString(value) > maxValue {
		return Claim{Name: u.GetName(), TooLong: true}, true
	}
	return Claim{Name: u.GetName(), Value: value}, true
}

// setClaims sets the reported claims: first all reserved ones, then custom ones up to the limit,
// each part sorted by name; a property replaces the claim of its name. What cannot be
// reported is left out and named in a condition.
func (s State) setClaims(c *clusterv1.ManagedCluster) {
	if !s.ClaimsKnown {
		return
	}
	var (
		out               []clusterv1.ManagedClusterClaim
		excess, unfit     []string
		customs, occupied int
	)
	for _, claim := range s.sortedClaims() {
		size := len(claim.Name) + len(claim.Value)
		custom := !s.isReserved(claim.Name)
		switch {
		case claim.TooLong || claim.Value == "" || claim.Name == "" || utf8.RuneCountInString(claim.Name) > maxName:
			unfit = append(unfit, claim.Name)
		case custom && customs >= s.MaxClaims, occupied+size > maxClaims:
			excess = append(excess, claim.Name)
		default:
			out = append(out, clusterv1.ManagedClusterClaim{Name: claim.Name, Value: claim.Value})
			occupied += size
			if custom {
				customs++
			}
		}
	}
	c.Status.ClusterClaims = out
	s.setLeftOut(c, excess, unfit)
}

// sortedClaims returns claims and properties in the order of the report.
func (s State) sortedClaims() []Claim {
	byName := make(map[string]Claim, len(s.Claims)+len(s.Properties))
	for _, part := range [][]Claim{s.Claims, s.Properties} {
		for _, claim := range part {
			byName[claim.Name] = claim
		}
	}
	rank := func(c Claim) int {
		if s.isReserved(c.Name) {
			return 0
		}
		return 1
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b Claim) int {
		return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Name, b.Name))
	})
}

func (s State) isReserved(name string) bool {
	switch name {
	case clusterv1alpha1.ClaimID, clusterv1alpha1.ClaimKubeVersion, clusterv1alpha1.ClaimPlatform, clusterv1alpha1.ClaimProduct:
		return true
	}
	return slices.ContainsFunc(s.ReservedSuffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// setLeftOut sets a condition that says what was left out and why; it removes the condition when
// everything is reported.
func (s State) setLeftOut(c *clusterv1.ManagedCluster, excess, unfit []string) {
	var parts []string
	reason := clusterv1.ReasonClaimsTruncated
	if len(unfit) > 0 {
		reason = clusterv1.ReasonClaimsInvalid
		parts = append(parts, fmt.Sprintf("%s cannot be reported: a value has 1 to %d characters", enumerate(unfit), maxValue))
	}
	if len(excess) > 0 {
		parts = append(parts, fmt.Sprintf("%s are left out: at most %d custom claims and %d bytes are reported (maxCustomClusterClaims of the Klusterlet)",
			enumerate(excess), s.MaxClaims, maxClaims))
	}
	if len(parts) == 0 {
		apimeta.RemoveStatusCondition(&c.Status.Conditions, clusterv1.ConditionClaimsReported)
		return
	}
	s.setCondition(c, metav1.Condition{Type: clusterv1.ConditionClaimsReported, Status: metav1.ConditionFalse, Reason: reason, Message: strings.Join(parts, "; ")})
}

// enumerate names the first few. It does not count the rest: a user who makes a thousand
// claims must not cause a thousand writes.
func enumerate(names []string) string {
	slices.Sort(names)
	more := ""
	if len(names) > maxNamed {
		more = " and more"
	}
	return "claims " + strings.Join(names[:min(len(names), maxNamed)], ", ") + more
}

// claimEvents reports each set of omitted claims once.
func claimEvents(before, after *clusterv1.ManagedCluster) []reconcile.Event {
	was := apimeta.FindStatusCondition(before.Status.Conditions, clusterv1.ConditionClaimsReported)
	is := apimeta.FindStatusCondition(after.Status.Conditions, clusterv1.ConditionClaimsReported)
	if is == nil || (was != nil && was.Message == is.Message) {
		return nil
	}
	return []reconcile.Event{{Type: "Warning", Reason: is.Reason, Message: is.Message, Namespace: after.Name}}
}
