// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/manifest"
)

// hubGroups is the end of the names of the hub's API groups.
const hubGroups = ".open-cluster-management.io"

// clusterKinds are the kinds of the hub's groups that have no namespace.
var clusterKinds = []string{"AddOnTemplate", "AppliedManifestWork", "ClusterClaim", "ClusterManagementAddOn", "ClusterManager", "Klusterlet",
	"ManagedCluster", "ManagedClusterSet"}

// Files judges manifests before they are sent. Objects of the hub's own kinds are shown to the
// API server of the hub and its admission, without being stored, and judged by what else is there
// and in the manifests; all others are checked as a
// work that carries them would be. Objects without a namespace get the given one.
func Files(ctx context.Context, o Options, sources []manifest.Source, namespace string) Report {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	f := &files{checking: &checking{o: &o, run: r}, namespace: namespace, places: map[string]string{}, made: map[string]bool{}}
	areas := make([]Area, len(sources))
	parsed := make([][]*unstructured.Unstructured, len(sources))
	for i, s := range sources {
		var err error
		areas[i].Name = s.Name
		if parsed[i], err = s.Objects(); err != nil {
			areas[i].Findings = []Finding{unreadable(CodeManifests, err)}
			continue
		}
		f.note(parsed[i])
	}
	var verdicts []verdict
	for i, s := range sources {
		for _, u := range parsed[i] {
			v := f.judge(ctx, u, s.Name)
			if v.area = i; v.taken != nil {
				f.sent = append(f.sent, *v.taken)
			}
			verdicts = append(verdicts, v)
		}
	}
	p := &preview{checking: f.checking}
	for _, v := range verdicts {
		areas[v.area].Findings = append(areas[v.area].Findings, f.final(ctx, p, v)...)
	}
	return summary(areas, o.Skip)
}

// verdict is what is known of one object before the others are.
type verdict struct {
	area     int
	findings []Finding
	// taken is the object as the hub would store it; nil for one that it does not take, or that is
	// no object of the hub.
	taken *unstructured.Unstructured
}

// final adds to the verdict on an object that the hub takes whether it will work there.
func (f *files) final(ctx context.Context, p *preview, v verdict) []Finding {
	if v.taken == nil {
		return v.findings
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	found, err := p.of(ctx, v.taken)
	if err != nil {
		unknown := unreadable(CodeHubObjects, fleet.Explain("reading what "+fleet.Describe(v.taken)+" needs", f.o.Hub, err))
		unknown.Severity = SeverityWarning
		found = append(found, unknown)
	}
	return append(v.findings, found...)
}

// files are manifests that are judged together.
type files struct {
	*checking
	namespace string
	// places is where each object was, made are the namespaces among them.
	places map[string]string
	made   map[string]bool
}

func (f *files) note(objects []*unstructured.Unstructured) {
	for _, u := range objects {
		if u.GetAPIVersion() == "v1" && u.GetKind() == "Namespace" {
			f.made[u.GetName()] = true
		}
	}
}

// ours reports whether an object is of the hub's kinds.
func ours(u *unstructured.Unstructured) bool {
	return strings.HasSuffix(u.GroupVersionKind().Group, hubGroups)
}

// judge returns what is wrong with one object, or that it is right.
func (f *files) judge(ctx context.Context, u *unstructured.Unstructured, place string) verdict {
	namespace, hubs := f.namespace, ours(u)
	if hubs && slices.Contains(clusterKinds, u.GetKind()) {
		namespace = ""
	} else if u.GetNamespace() == "" && hubs {
		u.SetNamespace(namespace)
	}
	name := fleet.Describe(u)
	key := strings.Join([]string{u.GetAPIVersion(), name}, "|")
	if first, twice := f.places[key]; twice {
		return verdict{findings: []Finding{failure(CodeManifests, name+" appears twice", "it is in "+first+" too", fleet.Advice("leave one of them out"))}}
	}
	f.places[key] = place
	if !hubs {
		if err := manifest.Check(u, name, namespace); err != nil {
			return verdict{findings: []Finding{unreadable(CodeManifests, err)}}
		}
		return verdict{findings: good(CodeManifests, "%s can be sent by a work", name)}
	}
	if f.made[u.GetNamespace()] {
		u.SetCreationTimestamp(metav1.NewTime(f.run.Now()))
		return verdict{findings: good(CodeHubObjects, "%s is made together with its namespace, and judged when that exists", name), taken: u}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	o := metav1.ApplyOptions{FieldManager: fleet.FieldManager, Force: true, DryRun: []string{metav1.DryRunAll}}
	taken, err := f.o.Hub.Client.Resource(fleet.ResourceOf(u)).Namespace(u.GetNamespace()).Apply(ctx, u.GetName(), u, o)
	if err != nil {
		return verdict{findings: []Finding{failure(CodeHubObjects, "the hub refuses "+name, fleet.OneLine(err.Error()), fleet.Advice("correct what is named"))}}
	}
	return verdict{findings: good(CodeHubObjects, "the hub takes %s", name), taken: taken}
}
