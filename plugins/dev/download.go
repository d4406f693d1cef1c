// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/supply"
)

// controlPlane are the programs of Kubernetes that a playground runs.
var controlPlane = []string{"etcd", "kube-apiserver", "kube-controller-manager"}

const megabyte = 1_000_000

// downloadError is why the programs of Kubernetes could not be downloaded.
type downloadError struct{ err error }

func (e *downloadError) Error() string { return e.err.Error() }
func (e *downloadError) Unwrap() error { return e.err }

// download puts the programs of Kubernetes into a folder, and shows how far it is.
func (o *UpOptions) download(ctx context.Context, into string) error {
	u := o.f.UI
	p := u.Progress()
	defer p.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("the %s of --timeout have passed; programs that are complete stay", o.Timeout))
	defer cancel()
	start := u.Streams.Clock.Now()
	step := fleet.Step{Name: "Kubernetes " + playground.KubernetesVersion, State: fleet.Running, Detail: "downloading from " + o.DownloadFrom}
	p.Step(step)
	tenth := int64(0)
	err := supply.Download{From: o.DownloadFrom, Into: into, Progress: func(done, total int64) {
		if done*10/total == tenth {
			return
		}
		tenth = done * 10 / total
		whole := cluster.Rollout{Done: int(done / megabyte), Waiting: int((total - done) / megabyte), Total: int(total / megabyte)}
		step.Detail, step.Elapsed = ui.Bar(whole)+" MB", u.Streams.Clock.Since(start)
		p.Step(step)
	}}.Fetch(ctx, controlPlane...)
	step.Elapsed = u.Streams.Clock.Since(start)
	if err != nil {
		step.State, step.Detail = fleet.Broken, ""
		p.Step(step)
		return &downloadError{err}
	}
	step.State, step.Detail = fleet.Done, "downloaded into "+into
	p.Step(step)
	return nil
}
