// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/version"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
)

// VersionInfo is what runs on a hub and on its clusters.
type VersionInfo struct {
	// Version and Image of the hub process.
	Version string `json:"version"`
	Image   string `json:"image"`
	// Agents counts the agents of each version.
	Agents []AgentCount `json:"agents,omitempty"`
	// Skew says whether the versions are compatible.
	Skew string `json:"skew,omitempty"`
}

// AgentCount is how many agents have a version; "unknown" for those that do not report one.
type AgentCount struct {
	Version string `json:"version"`
	Count   int    `json:"count"`
}

// CountText returns Count as text.
func (a AgentCount) CountText() string { return strconv.Itoa(a.Count) }

// Versions reads the versions of a hub; client is the version of the program.
func Versions(ctx context.Context, hub *fleet.Cluster, client string) (VersionInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, fleet.ReachTimeout)
	defer cancel()
	d, err := Deployment(ctx, hub)
	if err != nil {
		return VersionInfo{}, err
	}
	if d == nil {
		return VersionInfo{}, fleet.NotHub(hub, "there is no deployment "+operatorv1.NamespaceOperator+"/"+operatorv1.DefaultClusterManagerName)
	}
	out := VersionInfo{Image: ImageOf(d)}
	out.Version = TagOf(out.Image)
	clusters, err := cluster.List(ctx, cluster.ListOptions{Hub: hub})
	if err != nil {
		return out, err
	}
	counts := map[string]int{}
	for _, c := range clusters {
		counts[cmp.Or(c.AgentVersion, "unknown")]++
	}
	for v, n := range counts {
		out.Agents = append(out.Agents, AgentCount{v, n})
	}
	slices.SortFunc(out.Agents, func(a, b AgentCount) int { return cmp.Compare(a.Version, b.Version) })
	out.Skew = skew(client, out.Version)
	return out, nil
}

// skew says whether program and hub are compatible: the same minor version.
func skew(client, hub string) string {
	a, errA := version.ParseSemantic(client)
	b, errB := version.ParseSemantic(hub)
	switch {
	case errA != nil || errB != nil:
		return "the versions cannot be compared"
	case a.Major() != b.Major() || a.Minor() != b.Minor():
		return "program " + client + " and hub " + hub + " differ: use a program of the hub's minor version"
	}
	return "the versions are compatible"
}

// FittingText says which agents a hub works with.
const FittingText = "agents may be two minor releases older than their hub, and one newer"

// Fits reports whether a hub of one release works with an agent of the other. What is no release,
// or is of development, is not judged.
func Fits(hub, agent string) bool {
	h, a, ok := releases(hub, agent)
	return !ok || h.Major() == a.Major() && a.Minor()+2 >= h.Minor() && a.Minor() <= h.Minor()+1
}

// Suits reports whether a program is of the same minor release as its hub. What is no release, or
// is of development, is not judged.
func Suits(program, hub string) bool {
	p, h, ok := releases(program, hub)
	return !ok || p.Major() == h.Major() && p.Minor() == h.Minor()
}

// releases parses two versions; false when one is no release, or is of development.
func releases(first, second string) (a, b *version.Version, ok bool) {
	a, errA := version.ParseSemantic(first)
	b, errB := version.ParseSemantic(second)
	development := func(v *version.Version) bool { return v.Major() == 0 && v.Minor() == 0 }
	return a, b, errA == nil && errB == nil && !development(a) && !development(b)
}
