// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/internal/image"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
)

// UpgradeResult is the result of Upgrade.
type UpgradeResult struct {
	InitResult
	// From is the version before.
	From string `json:"from"`
}

// Upgrade moves a hub of ours to another release and waits until it is ready. Without an image
// it takes that of the release from where the current one came. It refuses to go back to an
// older release, which may not know what a newer one has stored, and a release that agents of the
// hub are too old for.
func Upgrade(ctx context.Context, o InitOptions) (UpgradeResult, error) {
	result := UpgradeResult{InitResult: InitResult{Context: o.Hub.Context, Server: o.Hub.Server(), Version: o.Version, Action: fleet.Unchanged}}
	if err := refuseHosted(ctx, o.Hub); err != nil {
		return result, err
	}
	d, err := Deployment(ctx, o.Hub)
	switch {
	case err != nil:
		return result, err
	case d == nil:
		return result, fleet.NotHub(o.Hub, "there is no deployment "+operatorv1.NamespaceOperator+"/"+operatorv1.DefaultClusterManagerName)
	case OthersHub(d):
		return result, fleet.Refuse("the hub of "+o.Hub.String()+" is run by another operator", "deployment "+d.Namespace+"/"+d.Name+" runs "+ImageOf(d),
			Adopt.On(o.Hub))
	}
	result.From = versionOf(d)
	if IsOlder(o.Version, result.From) {
		return result, fleet.Refuse("the hub of "+o.Hub.String()+" would be downgraded", "it has "+result.From+", and "+o.Version+" is older",
			fleet.Advice("use "+result.From+" or newer"))
	}
	if err := checkAgents(ctx, o); err != nil {
		return result, err
	}
	if o.Image == "" {
		repository, _ := image.Split(ImageOf(d))
		o.Image = repository + ":" + o.Version
	}
	if o.Replicas == 0 {
		o.Replicas = max(1, ptr.Deref(d.Spec.Replicas, 1))
	}
	result.InitResult, err = Init(ctx, o)
	return result, err
}

// checkAgents refuses a release that does not work with agents that report.
func checkAgents(ctx context.Context, o InitOptions) error {
	clusters, err := cluster.List(ctx, cluster.ListOptions{Common: fleet.Common{Timeout: o.Timeout, Clock: o.Clock}, Hub: o.Hub})
	if err != nil && !errors.Is(err, fleet.ErrNotHub) { // without its kinds it has no clusters either
		return err
	}
	var names, old []string
	for _, c := range clusters {
		if c.Status == cluster.Available && !Fits(o.Version, c.AgentVersion) {
			names, old = append(names, c.Name), append(old, c.Name+" has "+c.AgentVersion)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fleet.Refuse(o.Version+" does not work with "+fleet.Many(len(names), "agent")+" of the hub of "+o.Hub.String(),
		fleet.Listed(old)+": "+FittingText, UpgradeAgent.With("cluster", names[0], "context", ""))
}

// versionOf returns the release that a Deployment of ours runs.
func versionOf(d *appsv1.Deployment) string {
	if v := d.Annotations[operatorv1.AnnotationVersion]; v != "" {
		return "v" + strings.TrimPrefix(v, "v")
	}
	return TagOf(ImageOf(d))
}

// IsOlder reports whether a release is older than another; what is no release is not.
func IsOlder(a, b string) bool {
	one, errA := version.ParseSemantic(a)
	other, errB := version.ParseSemantic(b)
	return errA == nil && errB == nil && one.LessThan(other)
}
