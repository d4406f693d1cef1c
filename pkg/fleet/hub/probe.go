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

// Fault is a webhook of a hub that did not show that it answers.
type Fault struct {
	// name is that of the webhook and of its configuration; the address of the
	// conversion, for that of add-ons.
	name string
	// Title and cause are lines for a person.
	Title, Cause string
	// Unasked tells that nothing is known: we may not ask, or somebody else answered
	// first.
	Unasked bool
}

// probe is a write that one webhook alone judges, and how its answer is
// told from silence. It is a dry run: nothing is stored, whatever the answer is.
type probe struct {
	name     string
	resource schema.GroupVersionResource
	// kind and body make the object: what is written, without its group and version.
	kind, body string
	// field tells that a hub of the field's own operators has this webhook, too.
	field bool
	// accepted judges a write that was let through. Where it is nil the webhook
	// refuses the write, and one that is let through was judged by nobody.
	accepted func(*unstructured.Unstructured) bool
}

const (
	// probeName names what is never stored.
	probeName = "kubectl-ocm-probe"
	// probeTime is a time that the hub does not take over from whoever creates a
	// cluster.
	probeTime = "2001-01-01T00:00:00Z"
	// conversionFault stands for the conversion of add-ons, which has no
	// configuration of its own.
	conversionFault = "conversion of clustermanagementaddons"
	// probeTimeout is a little more than the API server grants to a webhook.
	probeTimeout = 12 * time.Second
)

// unaskable are the webhooks that no write of a person tells from silence: they judge
// agents alone, deletions, or refuse nothing to somebody who has all rights. Whether their
// configurations are there is looked at all the same.
var unaskable = []string{
	"clusternamespacevalidators.admission.cluster.open-cluster-management.io",
	"addontemplatevalidators.admission.addon.open-cluster-management.io",
	"managedclusteraddonstatusvalidators.admission.addon.open-cluster-management.io",
	"managedclusterstatusvalidators.admission.cluster.open-cluster-management.io",
	"manifestworkstatusvalidators.admission.work.open-cluster-management.io",
}

// admissionProbes has one probe for every other webhook of a hub. Those that the field's
// hubs have, too, break rules that both keep.
func admissionProbes() []probe {
	const inDefault = `"metadata":{"name":"` + probeName + `","namespace":"default"}`
	const clusterWide = `"metadata":{"name":"` + probeName + `"}`
	group := fleet.AddOnTemplates.Group
	return []probe{
		{name: "managedclustermutators.admission.cluster.open-cluster-management.io", resource: fleet.ManagedClusters, kind: "ManagedCluster", field: true,
			accepted: stamped,
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
		// A write in the newer version is converted before it is stored, in a dry run, too.
		{name: conversionFault, resource: schema.GroupVersionResource{Group: group, Version: "v1beta1", Resource: "clustermanagementaddons"},
			kind: "ClusterManagementAddOn",
			body: clusterWide + `,"spec":{}`, field: true, accepted: func(*unstructured.Unstructured) bool { return true }},
	}
}

// stamped tells that the mutation put its own time into a taint.
func stamped(u *unstructured.Unstructured) bool {
	taints, _, _ := unstructured.NestedSlice(u.Object, "spec", "taints")
	return !slices.ContainsFunc(taints, func(t any) bool {
		m, _ := t.(map[string]any)
		return m["key"] == probeName && m["timeAdded"] == probeTime
	})
}

// probesOf are the probes of a hub of ours, or of one that others run.
func probesOf(others bool) []probe {
	return slices.DeleteFunc(admissionProbes(), func(p probe) bool { return others && !p.field })
}

// probeAdmission asks every webhook of a hub one question, all at once, and
// returns those that did not answer, in the order of admissionProbes. One pass is no
// verdict right after the hub has changed: the API server learns of a webhook, and of
// where it is, with some delay. The error says that the hub could not be asked at all.
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
	// What a webhook says of a probe is nothing for a person to read.
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
			found[i], err = probes[i].ask(ctx, client)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fleet.Explain("asking admission", hub, err)
	}
	var out []Fault
	for _, f := range found {
		if f != nil {
			out = append(out, *f)
		}
	}
	return out, nil
}

// ask sends the write.
func (p *probe) ask(ctx context.Context, client dynamic.Interface) (*Fault, error) {
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
	return p.judge(answer, err), nil
}

// judge reads an answer; nil means that the webhook gave it. It is pure.
func (p *probe) judge(answer *unstructured.Unstructured, err error) *Fault {
	f := &Fault{name: p.name, Title: p.name + " does not answer"}
	switch text := oneLineOf(err); {
	case err == nil && p.accepted == nil:
		f.Title, f.Cause = p.name+" is not asked", "what it refuses is let through"
	case err == nil && !p.accepted(answer):
		f.Title, f.Cause = p.name+" is not asked", "what it has to write is not written"
	case err == nil, p.accepted == nil && strings.Contains(text, fmt.Sprintf("admission webhook %q denied the request", p.name)):
		return nil
	case strings.Contains(text, "failed calling webhook"), strings.Contains(text, "conversion webhook"):
		f.Cause = text
		if !strings.Contains(text, p.name) && p.name != conversionFault {
			f.Unasked, f.Title = true, p.name+" could not be asked"
		}
	case p.accepted != nil && strings.Contains(text, "admission webhook"):
		// Somebody judged what this webhook had passed on.
		return nil
	default:
		f.Unasked, f.Title, f.Cause = true, p.name+" could not be asked", text
	}
	return f
}

// oneLineOf is the text of an error, "" where there is none.
func oneLineOf(err error) string {
	if err == nil {
		return ""
	}
	return fleet.OneLine(err.Error())
}
