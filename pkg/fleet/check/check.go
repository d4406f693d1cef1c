// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/canary"
)

// Severity is how bad a finding is.
type Severity string

// The severities, from good to bad.
const (
	SeverityOK      Severity = "ok"
	SeverityWarning Severity = "warning"
	SeverityError   Severity = "error"
)

// Finding is what one check found.
type Finding struct {
	// Code names the check.
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	// Title is one line, Cause is why, Fix is what helps.
	Title string    `json:"title"`
	Cause string    `json:"cause,omitempty"`
	Fix   fleet.Fix `json:"fix,omitempty"`
}

// Area is a hub, a cluster on it, or the agent of a cluster, with the findings there.
type Area struct {
	Name     string    `json:"name"`
	Findings []Finding `json:"findings"`
}

// Report is the result of all checks.
type Report struct {
	Areas    []Area `json:"areas"`
	OK       int    `json:"ok"`
	Warnings int    `json:"warnings"`
	Errors   int    `json:"errors"`
	// Canaries are what EndToEnd has sent.
	Canaries []canary.Flight `json:"canaries,omitempty"`
}

// Options say what to check.
type Options struct {
	fleet.Common
	// Hub is the hub to check; nil for none.
	Hub *fleet.Cluster
	// Spoke is the cluster whose agent to check; nil for none.
	Spoke *fleet.Cluster
	// HubOnly checks only the hub itself, ClustersOnly its clusters, PlacementsOnly its
	// placements, AddOnsOnly its add-ons.
	HubOnly, ClustersOnly, PlacementsOnly, AddOnsOnly bool
	// Clusters are the clusters of the hub to check; empty means all, or only Spoke's when
	// Spoke is not the hub itself.
	Clusters []string
	// Placements are the placements to check; empty means all.
	Placements []types.NamespacedName
	// Works are works to check, each by its cluster as the namespace: then nothing else is
	// checked.
	Works []types.NamespacedName
	// AddOns are the names of the add-ons to check; empty means all.
	AddOns []string
	// Version is that of the caller's program; "" leaves out whether it suits the hub.
	Version string
	// Skip leaves out checks, by code.
	Skip []string
	// ContextOf returns the context with which the caller reaches an API server, so that
	// printed commands can be run as they are; "" when there is none. It may be nil.
	ContextOf func(server string) string
}

// checkTimeout bounds each check, so that one that hangs does not hold up the others.
const checkTimeout = 10 * time.Second

// Sides finds out what a cluster is: a hub, a cluster with an agent, or both. It returns an
// error when the cluster is neither or does not answer.
func Sides(ctx context.Context, c *fleet.Cluster) (hub, spoke *fleet.Cluster, err error) {
	if _, err := fleet.ServerVersion(ctx, c); err != nil {
		return nil, nil, err
	}
	if fleet.IsHub(ctx, c) {
		hub = c
	}
	agents, err := fleet.ListAll(ctx, c, fleet.Query{Resource: fleet.Klusterlets})
	switch {
	case err != nil && hub == nil:
		return nil, nil, fleet.Explain("listing klusterlets", c, err)
	case len(agents) > 0:
		spoke = c
	}
	if hub == nil && spoke == nil {
		return nil, nil, fleet.NotHub(c, "it serves no managedclusters, and no agent of its own runs there")
	}
	return hub, spoke, nil
}

// Run looks for what keeps a fleet from working and names each cause with its fix. It only
// reads. What cannot be read is a finding, not an error. All checks run at the same time, each
// for ten seconds at most.
func Run(ctx context.Context, o Options) (Report, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	c := &checking{o: &o, run: r}
	parts := c.parts()
	found := make([][]Area, len(parts))
	var group errgroup.Group
	for i, part := range parts {
		group.Go(func() error {
			found[i] = part(ctx)
			return nil
		})
	}
	_ = group.Wait()
	return summary(slices.Concat(found...), o.Skip), nil
}

// summary counts the findings of all areas, without those whose code is to be left out.
func summary(areas []Area, skip []string) Report {
	var report Report
	for _, area := range areas {
		area.Findings = slices.DeleteFunc(area.Findings, func(f Finding) bool { return slices.Contains(skip, f.Code) })
		for _, f := range area.Findings {
			switch f.Severity {
			case SeverityOK:
				report.OK++
			case SeverityWarning:
				report.Warnings++
			case SeverityError:
				report.Errors++
			}
		}
		if len(area.Findings) > 0 {
			report.Areas = append(report.Areas, area)
		}
	}
	return report
}

// parts returns the parts to check.
func (c *checking) parts() []func(context.Context) []Area {
	var out []func(context.Context) []Area
	o := c.o
	if len(o.Works) > 0 {
		return []func(context.Context) []Area{c.namedWorks}
	}
	limited := o.HubOnly || o.ClustersOnly || o.PlacementsOnly || o.AddOnsOnly
	for _, part := range []struct {
		only bool
		look func(context.Context) []Area
	}{{o.HubOnly, c.hub}, {o.ClustersOnly, c.clusters}, {o.ClustersOnly, c.identities}, {o.PlacementsOnly, c.placements}, {o.AddOnsOnly, c.addOns}} {
		if o.Hub != nil && (part.only || !limited) {
			out = append(out, part.look)
		}
	}
	if o.Spoke != nil {
		out = append(out, c.spoke)
	}
	if o.Hub != nil && !limited {
		out = append(out, c.replicaSets)
	}
	return out
}

// checking is one run of checks.
type checking struct {
	o   *Options
	run *fleet.Run
	// sent are objects that are to be sent to the hub: a check of files sees it with them.
	sent []unstructured.Unstructured
	// told are the ClusterPermissions with findings of their own, once they are read.
	told     map[types.NamespacedName]bool
	readTold sync.Once
}

// check is one check; findings are returned in the order of the list.
type check struct {
	code string
	look func(context.Context) ([]Finding, error)
}

// runAll runs checks at the same time. A check that fails yields a finding with its code.
func (c *checking) runAll(ctx context.Context, checks []check) []Finding {
	found := make([][]Finding, len(checks))
	var group errgroup.Group
	for i, one := range checks {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			list, err := one.look(ctx)
			if err != nil {
				list = append(list, unreadable(one.code, err))
			}
			found[i] = list
			return nil
		})
	}
	_ = group.Wait()
	return slices.Concat(found...)
}

// withoutEchoes leaves out what a status says is well, by the code said, where the check with the
// code runs found that the process which writes that status does not run: it is from before then.
func withoutEchoes(found []Finding, said, runs string) []Finding {
	if !slices.ContainsFunc(found, func(f Finding) bool { return f.Code == runs && f.Severity == SeverityError }) {
		return found
	}
	return slices.DeleteFunc(found, func(f Finding) bool { return f.Code == said && f.Severity == SeverityOK })
}

// unreadable returns the finding for a check that could not run.
func unreadable(code string, err error) Finding {
	var e *fleet.Error
	if errors.As(err, &e) {
		return failure(code, e.Message, e.Cause, e.Fix)
	}
	return failure(code, fleet.OneLine(err.Error()), "", nil)
}

// failure returns a finding that keeps something from working, warning one that may do so.
func failure(code, title, cause string, fix fleet.Fix) Finding {
	return Finding{Code: code, Severity: SeverityError, Title: title, Cause: cause, Fix: fix}
}

func warning(code, title, cause string, fix fleet.Fix) Finding {
	return Finding{Code: code, Severity: SeverityWarning, Title: title, Cause: cause, Fix: fix}
}

func good(code, format string, args ...any) []Finding {
	return []Finding{{Code: code, Severity: SeverityOK, Title: fmt.Sprintf(format, args...)}}
}

// reach returns the check that an API server answers at all.
func (c *checking) reach(code string, cluster *fleet.Cluster) check {
	return check{code, func(ctx context.Context) ([]Finding, error) {
		from := c.run.Now()
		version, err := fleet.ServerVersion(ctx, cluster)
		if err != nil {
			return nil, err
		}
		return good(code, "API server reachable, %s, %d ms", version, c.run.Given.Clock.Since(from).Milliseconds()), nil
	}}
}
