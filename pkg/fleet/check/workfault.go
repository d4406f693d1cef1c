// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"regexp"
	"strings"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
)

// workFault is one reason why an object of a work is not applied. Agents report it only as
// text: that of the API server, or their own.
type workFault struct {
	code string
	// text is how its messages look; its groups are in brokenWork.found.
	text *regexp.Regexp
	// title is why the work is not applied, a format for the groups of the text if it has a verb.
	title string
	fix   func(*checking, *brokenWork) fleet.Fix
}

// brokenWork is a work that is not applied.
type brokenWork struct {
	*work.Info
	work *workv1.ManifestWork
	// context is that of its cluster; "" when unknown.
	context string
	// found are the groups of the fault's text in its message.
	found []string
}

// workFaults are in order: the text of a later one may also be in the message of an earlier.
var workFaults = []workFault{
	{CodeWorkExecutor, regexp.MustCompile(`not allowed to apply the resource|for the executor|executor service account|spec\.executor\.`),
		"its executor may not apply it", (*checking).grantExecutor},
	{CodeWorkRival, regexp.MustCompile(`the older ManifestWork (\S+) declares this object`),
		"the older work %s declares the same object", (*checking).showRivals},
	{CodeWorkKind, regexp.MustCompile(`the server doesn't have a resource type "([^"]+)"(?: in ([^:\s]+))?`),
		"the cluster has no kind %s", (*checking).listServed},
	{CodeWorkNamespace, regexp.MustCompile(`namespaces "([^"]+)" not found`),
		"the cluster has no namespace %s", (*checking).createNamespace},
	{CodeWorkNamespace, regexp.MustCompile(`in namespace (\S+) because it is being terminated`),
		"its namespace %s is being deleted", (*checking).awaitNamespace},
	{CodeWorkConflict, regexp.MustCompile(`Apply failed with \d+ conflict|the API server answered Conflict`),
		"another field manager owns fields of it", (*checking).forceFields},
	{CodeWorkForbidden, regexp.MustCompile(`is forbidden: User "([^"]+)" cannot \S+ resource "([^"]+)" in API group "([^"]*)"`),
		"the agent may not write it", (*checking).grantAgent},
	{CodeWorkForbidden, regexp.MustCompile(`attempting to grant RBAC permissions not currently held`),
		"the agent may not grant what it has not", (*checking).showObjects},
	{CodeWorkPolicy, regexp.MustCompile(`admission webhook "[^"]+" denied|ValidatingAdmissionPolicy|is forbidden: |the API server answered Forbidden`),
		"a policy of the cluster refuses it", (*checking).editWork},
	{CodeWorkSize, regexp.MustCompile(`Too long: may not be more than \d+ bytes|[Rr]equest( entity)? (is )?too large|trying to send message larger`),
		"an object of it is too large", (*checking).editWork},
	{CodeWorkInvalid, regexp.MustCompile(`is invalid|is immutable|cannot change roleRef|typed patch|unknown field|cannot unmarshal|` +
		`is declared twice in the work|the API server answered (Invalid|BadRequest)`),
		"an object of it is not valid", (*checking).editWork},
}

// faultOf returns the finding for a work that is not applied, by what its message says.
func (c *checking) faultOf(b *brokenWork) (Finding, bool) {
	for _, fault := range workFaults {
		if b.found = fault.text.FindStringSubmatch(b.Message); b.found == nil {
			continue
		}
		why := fault.title
		if strings.Contains(why, "%s") {
			why = fmt.Sprintf(why, b.found[1])
		}
		return warning(fault.code, "work "+b.Name+" is not applied: "+why, b.Message, fault.fix(c, b)), true
	}
	return Finding{}, false
}

func (c *checking) showObjects(b *brokenWork) fleet.Fix {
	return ShowTree.On(c.o.Hub, "work", b.Name, "cluster", b.Cluster)
}

// granted recognizes the command by which agents name the rights that an executor lacks. Its parts
// are put together again here: what a cluster reports is no command to type.
var granted = regexp.MustCompile(` create ((?:cluster)?role) (\S+) \S*verb=(\S+) \S*resource=(\S+)(?: \S+ (\S+))? && .*serviceaccount=(\S+)`)

func (c *checking) grantExecutor(b *brokenWork) fleet.Fix {
	of := granted.FindStringSubmatch(b.Message)
	if of == nil {
		return c.showObjects(b)
	}
	return GrantExecutor.With("kind", of[1], "role", of[2], "verbs", of[3], "resource", of[4], "namespace", of[5], "account", of[6],
		"context", b.context, "cluster", b.Cluster)
}

func (c *checking) grantAgent(b *brokenWork) fleet.Fix {
	resource := strings.TrimSuffix(b.found[2]+"."+b.found[3], ".")
	return GrantAgent.With("role", "ocm-works-"+strings.ReplaceAll(resource, "/", "-"), "resource", resource, "label", operatorv1.LabelAggregateToWork,
		"context", b.context, "cluster", b.Cluster)
}

func (c *checking) showRivals(b *brokenWork) fleet.Fix {
	return ShowRivals.On(c.o.Hub, "work", b.Name, "older", b.found[1], "cluster", b.Cluster)
}

func (c *checking) listServed(b *brokenWork) fleet.Fix {
	group, _, named := strings.Cut(b.found[2], "/")
	if !named {
		group = ""
	}
	return ListServed.With("group", group, "context", b.context, "cluster", b.Cluster)
}

func (c *checking) createNamespace(b *brokenWork) fleet.Fix {
	return CreatePlace.With("namespace", b.found[1], "context", b.context, "cluster", b.Cluster)
}

func (c *checking) awaitNamespace(b *brokenWork) fleet.Fix {
	return AwaitPlace.With("namespace", b.found[1], "context", b.context, "cluster", b.Cluster)
}

// forceFields is the fix that takes over the fields, where it is clear which configuration of
// the work leaves them to others.
func (c *checking) forceFields(b *brokenWork) fleet.Fix {
	at := -1
	for i, config := range b.work.Spec.ManifestConfigs {
		s := config.UpdateStrategy
		if s == nil || s.Type != workv1.UpdateStrategyTypeServerSideApply || s.ServerSideApply != nil && s.ServerSideApply.Force {
			continue
		}
		if at >= 0 {
			return c.showObjects(b)
		}
		at = i
	}
	if at < 0 || b.Owner != "" {
		return c.showObjects(b)
	}
	path, value := fmt.Sprintf("/spec/manifestConfigs/%d/updateStrategy/serverSideApply", at), `{"force":true}`
	if b.work.Spec.ManifestConfigs[at].UpdateStrategy.ServerSideApply != nil {
		path, value = path+"/force", "true"
	}
	return TakeFields.On(c.o.Hub, "work", b.Name, "cluster", b.Cluster, "patch", fmt.Sprintf(`[{"op":"add","path":%q,"value":%s}]`, path, value))
}

// editWork is the fix that corrects the manifests where a user has written them.
func (c *checking) editWork(b *brokenWork) fleet.Fix {
	set, bySet := strings.CutPrefix(b.Owner, "replicaset ")
	addOn, byAddOn := strings.CutPrefix(b.Owner, "addon ")
	switch namespace, name, _ := strings.Cut(set, "/"); {
	case bySet:
		return EditObject.On(c.o.Hub, "resource", "manifestworkreplicaset", "name", name, "namespace", namespace)
	case byAddOn:
		return fleet.ShowAddOn.On(c.o.Hub, "addon", addOn, "cluster", b.Cluster)
	case b.Owner != "":
		return c.showObjects(b)
	}
	return EditObject.On(c.o.Hub, "resource", "manifestwork", "name", b.Name, "namespace", b.Cluster)
}
