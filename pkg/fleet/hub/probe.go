// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Fault is a webhook of a hub that could not be shown to answer.
type Fault struct {
	// name is that of the webhook and of its configuration; for the conversion of add-ons,
	// conversionFault.
	name string
	// Title and cause are for display.
	Title, Cause string
	// Unasked is true when nothing is known: the caller has no right to probe, or another
	// webhook answered first.
	Unasked bool
}

// probe is a write that only one webhook handles, and how to tell its answer from silence. It
// is a dry run: nothing is stored, whatever the answer is.
type probe struct {
	name     string
	resource schema.GroupVersionResource
	// kind and body make the object to write; body lacks group and version.
	kind, body string
	// field is true when hubs of the Open Cluster Management operators have this webhook too.
	field bool
	// accepted reports whether the webhook has handled an admitted write. When it is nil the
	// webhook refuses the write, and an admitted one means that it was not called.
	accepted func(*unstructured.Unstructured) bool
}

const (
	// probeName is the name of objects that are never stored.
	probeName = "kubectl-ocm-probe"
	// probeTime is a time that the hub does not accept from the creator of a cluster.
	probeTime = "2001-01-01T00:00:00Z"
	// conversionFault names the conversion of add-ons, which has no configuration of its own.
	conversionFault = "conversion of clustermanagementaddons"
	// probeTimeout is a little longer than the API server's timeout for a webhook.
	probeTimeout = 12 * time.Second
)

// unaskable are the webhooks that cannot be probed by a user's write: they only handle agents
// or deletions, or refuse nothing to a user with all rights, or are for a kind that is served only
// with a gate. Their configurations are checked
// nevertheless.
var unaskable = []string{
	"clusternamespacevalidators.admission.cluster.open-cluster-management.io",
	"clusterpermissionvalidators.admission.rbac.open-cluster-management.io",
	"addontemplatevalidators.admission.addon.open-cluster-management.io",
	"managedclusteraddonstatusvalidators.admission.addon.open-cluster-management.io",
	"managedclusteraddonvalidators.admission.addon.open-cluster-management.io",
	"managedclusterstatusvalidators.admission.cluster.open-cluster-management.io",
	"manifestworkstatusvalidators.admission.work.open-cluster-management.io",
}

// admissionProbes has one probe for every other webhook of a hub. Probes that also apply to
// hubs of the Open Cluster Management operators break rules that both enforce.
func admissionProbes() []probe {
	const inDefault = `"metadata":{"name":"` + probeName + `","namespace":"default"}`
	const clusterWide = `"metadata":{"name":"` + probeName + `"}`
	group := fleet.AddOnTemplates.Group
	return []probe{
		{name: "managedclustermutators.admission.cluster.open-cluster-management.io", resource: fleet.ManagedClusters, kind: "ManagedCluster", field: true,
			accepted: isStamped,
			body:     clusterWide + `,"spec":{"hubAcceptsClient":false,"taints":[{"key":"` + probeName + `","effect":"NoSelect","timeAdded":"` + probeTime + `"}]}`},
		{name: "managedclustervalidators.admission.cluster.open-cluster-management.io", resource: fleet.ManagedClusters, kind: "ManagedCluster", field: true,
			body: clusterWide + `,"spec":{"hubAcceptsClient":false,"managedClusterClientConfigs":[{"url":"no address"}]}`},
		{name: "managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io", resource: fleet.SetBindings, kind: "ManagedClusterSetBinding",
			field: true,
			body:  inDefault + `,"spec":{"clusterSet":"other"}`},
		{name: "manifestworkvalidators.admission.work.open-cluster-management.io", resource: fleet.ManifestWorks, kind: "ManifestWork", field: true,
			body: inDefault + `,"spec":{"workload":{"manifests":[]}}`},
		{name: "manifestworkreplicasetvalidators.admission.work.open-cluster-management.io", resource: fleet.ReplicaSets, kind: "ManifestWorkReplicaSet",
			body: inDefault + `,"spec":{"placementRefs":[{"name":"p"}],"manifestWorkTemplate":{"workload":{"manifests":[]}}}`},
		{name: "managedclustersetvalidators.admission.cluster.open-cluster-management.io", resource: fleet.ManagedClusterSets, kind: "ManagedClusterSet",
			body: `"metadata":{"name":"` + strings.Repeat("s", 64) + `"},"spec":{}`},
		{name: "placementvalidators.admission.cluster.open-cluster-management.io", resource: fleet.Placements, kind: "Placement",
			body: inDefault + `,"spec":{"numberOfClusters":-1}`},
		// A write in the newer version is converted before it is stored, even in a dry run.
		{name: conversionFault, resource: schema.GroupVersionResource{Group: group, Version: "v1beta1", Resource: "clustermanagementaddons"},
			kind: "ClusterManagementAddOn",
			body: clusterWide + `,"spec":{}`, field: true, accepted: func(*unstructured.Unstructured) bool { return true }},
	}
}

// isStamped reports whether the mutation set its own time in a taint.
func isStamped(u *unstructured.Unstructured) bool {
	taints, _, _ := unstructured.NestedSlice(u.Object, "spec", "taints")
	return !slices.ContainsFunc(taints, func(t any) bool {
		m, _ := t.(map[string]any)
		return m["key"] == probeName && m["timeAdded"] == probeTime
	})
}

// probesOf returns the probes for our hub, or for the hub of another distribution.
func probesOf(others bool) []probe {
	return slices.DeleteFunc(admissionProbes(), func(p probe) bool { return others && !p.field })
}

// probeAdmission sends every webhook of a hub one probe, all at once, and returns those that
// did not answer, in the order of admissionProbes. One pass is not conclusive right after the
// hub has changed: the API server learns about a webhook and its address with some delay. The
// error means that the hub could not be probed at all.
func probeAdmission(ctx context.Context, hub *fleet.Cluster) ([]Fault, error) {
	runner, err := Deployment(ctx, hub)
	if err != nil {
		return nil, err
	}
	return askAdmission(ctx, hub, probesOf(OthersHub(runner)))
}

func askAdmission(ctx context.Context, hub *fleet.Cluster, probes []probe) ([]Fault, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	// Warnings of a webhook about a probe are not for the user.
	quiet := rest.CopyConfig(hub.Config)
	quiet.WarningHandler, quiet.WarningHandlerWithContext = rest.NoWarnings{}, nil
	client, err := dynamic.NewForConfig(quiet)
	if err != nil {
		return nil, err
	}
	found := make([]*Fault, len(probes))
	var group errgroup.Group
	for i := range probes {
		group.Go(func() (err error) {
			found[i], err = probes[i].send(ctx, client)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fleet.Explain("probing the webhooks", hub, err)
	}
	var out []Fault
	for _, f := range found {
		if f != nil {
			out = append(out, *f)
		}
	}
	return out, nil
}

// send sends the probe.
func (p *probe) send(ctx context.Context, client dynamic.Interface) (*Fault, error) {
	u := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,%s}`, p.resource.GroupVersion(), p.kind, p.body)
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		return nil, err
	}
	answer, err := client.Resource(p.resource).Namespace(u.GetNamespace()).
		Create(ctx, u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: fleet.FieldManager})
	if err != nil && (fleet.Unanswered(err) || apierrors.IsUnauthorized(err)) {
		return nil, err
	}
	return p.evaluate(answer, err), nil
}

// evaluate evaluates an answer; nil means that the webhook gave it. It has no side effects.
func (p *probe) evaluate(answer *unstructured.Unstructured, err error) *Fault {
	f := &Fault{name: p.name, Title: p.name + " does not answer"}
	switch text := oneLineOf(err); {
	case err == nil && p.accepted == nil:
		f.Title, f.Cause = p.name+" is not called", "what it would refuse is admitted"
	case err == nil && !p.accepted(answer):
		f.Title, f.Cause = p.name+" is not called", "what it has to set is not set"
	case err == nil, p.accepted == nil && strings.Contains(text, fmt.Sprintf("admission webhook %q denied the request", p.name)):
		return nil
	case strings.Contains(text, "failed calling webhook"), strings.Contains(text, "conversion webhook"):
		f.Cause = text
		if !strings.Contains(text, p.name) && p.name != conversionFault {
			f.Unasked, f.Title = true, p.name+" could not be probed"
		}
	case p.accepted != nil && strings.Contains(text, "admission webhook"):
		// A later check refused what this webhook had admitted.
		return nil
	default:
		f.Unasked, f.Title, f.Cause = true, p.name+" could not be probed", text
	}
	return f
}

// oneLineOf returns the text of an error; "" for nil.
func oneLineOf(err error) string {
	if err == nil {
		return ""
	}
	return fleet.OneLine(err.Error())
}
