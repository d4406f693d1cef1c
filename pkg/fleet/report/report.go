// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/bundle"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
)

// Options say of which hub to report.
type Options struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Version is that of the caller's program.
	Version string
	// ContextOf returns the context with which the caller reaches an API server; it may be nil.
	ContextOf func(server string) string
}

// Fleet is everything in a report. Messages are without what looks like a credential.
type Fleet struct {
	// At is when it was read.
	At metav1.Time `json:"at"`
	// Hub describes the hub: its context and address.
	Hub        string           `json:"hub"`
	Clusters   []cluster.Info   `json:"clusters"`
	Placements []placement.Info `json:"placements"`
	Works      []work.Info      `json:"works"`
	Sets       []work.SetInfo   `json:"workSets"`
	AddOns     []addon.Info     `json:"addons"`
	Check      check.Report     `json:"check"`
}

// Read reads the fleet: the lists and the check run at the same time, so the number of requests
// does not depend on the number of clusters.
func Read(ctx context.Context, o Options) (*Fleet, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	out := &Fleet{At: metav1.NewTime(r.Now()), Hub: o.Hub.String()}
	common := fleet.Common{Clock: o.Clock}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		out.Clusters, err = cluster.List(ctx, cluster.ListOptions{Common: common, Hub: o.Hub})
		return err
	})
	group.Go(func() (err error) {
		out.Placements, err = placement.List(ctx, placement.ListOptions{Common: common, Hub: o.Hub})
		return err
	})
	group.Go(func() (err error) {
		out.Works, err = work.List(ctx, work.ListOptions{Common: common, Hub: o.Hub})
		return err
	})
	group.Go(func() (err error) {
		out.Sets, err = work.ListSets(ctx, o.Hub, "", nil)
		return err
	})
	group.Go(func() (err error) {
		out.AddOns, err = addon.List(ctx, addon.ListOptions{Common: common, Hub: o.Hub})
		return err
	})
	group.Go(func() (err error) {
		out.Check, err = check.Run(ctx, check.Options{Common: common, Hub: o.Hub, Version: o.Version, ContextOf: o.ContextOf})
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out.scrub()
	return out, nil
}

// scrub removes what looks like a credential from everything that objects say in their own words.
func (f *Fleet) scrub() {
	for i := range f.Clusters {
		f.Clusters[i].Message = bundle.Scrub(f.Clusters[i].Message)
		f.Clusters[i].Claims = nil
	}
	for i := range f.Works {
		f.Works[i].Message = bundle.Scrub(f.Works[i].Message)
	}
	for i := range f.Sets {
		f.Sets[i].Message = bundle.Scrub(f.Sets[i].Message)
	}
	for _, area := range f.Check.Areas {
		for i := range area.Findings {
			area.Findings[i].Title, area.Findings[i].Cause = bundle.Scrub(area.Findings[i].Title), bundle.Scrub(area.Findings[i].Cause)
		}
	}
}
