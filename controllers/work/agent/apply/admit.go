// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/executor"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// authorize makes the pass write as the work's executor, and lets changes of its rights
// wake the work. The epoch of the rights is recorded before the objects are read, so that
// no change is missed.
func (p *pass) authorize(ctx context.Context) error {
	p.applier = p.c.Applier
	account, name := p.state.Executor, p.c.Applied.Identity.Name(p.state.Work.Name)
	if account.IsAgent() {
		p.c.Rights.Forget(name) //nolint:contextcheck // watches live as long as the agent, not as this pass
		return nil
	}
	client, err := p.c.Rights.As(account)
	if err != nil {
		return err
	}
	p.applier = p.c.Applier.As(client)
	var namespaces []string
	for i := range p.plan.Tasks {
		if t := &p.plan.Tasks[i]; t.Phase.names() {
			namespaces = append(namespaces, t.ID.Namespace)
		}
	}
	p.c.Rights.Track(ctx, name, account, namespaces...)
	for i := range p.plan.Tasks {
		t := &p.plan.Tasks[i]
		if !t.Phase.names() || !t.Action.looks() {
			continue
		}
		if now := p.c.Rights.Epoch(account, t.ID.Namespace); now != t.Rights {
			t.Rights, t.Granted = now, false
		}
	}
	return nil
}

// admit checks whether the executor may apply the object. Rights once granted hold until
// they change, except for objects that grant rights themselves.
func (p *pass) admit(ctx context.Context, t *Task, live *unstructured.Unstructured) error {
	if t.Executor.IsAgent() {
		return nil
	}
	if !t.Granted {
		if err := p.c.Rights.Check(ctx, t.Executor, t.wanted()); err != nil {
			return err
		}
		t.Granted = true
	}
	if live == nil || t.Options.Strategy == workv1.UpdateStrategyTypeReadOnly {
		// Either the object grants nothing, or the API server checks the create as such.
		return nil
	}
	return p.c.Rights.Rehearse(ctx, t.Executor, t.wanted(), t.Object)
}

// wanted describes the object for a check of the executor's rights.
func (t *Task) wanted() executor.Object {
	return executor.Object{Resource: t.Resource, Namespace: t.ID.Namespace, Name: t.ID.Name, Owned: t.Options.Owned}
}
