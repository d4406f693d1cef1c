// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Name identifies the loop that reports tunnels.
const Name = "cluster.tunnelreport"

const (
	// settleStart is how long agents have for their tunnels after this process started, and
	// settleLoss for another one after a loss: nobody is told of what is over by then.
	settleStart, settleLoss = time.Minute, 5 * time.Second
	// reporters is how many clusters are written at the same time, and forgetPage how many are read.
	reporters  = 4
	forgetPage = 500
)

// State is the input of Decide.
type State struct {
	// Cluster is the ManagedCluster, and Accepted whether it may have a tunnel.
	Cluster  *clusterv1.ManagedCluster
	Accepted bool
	// Presence is what is known of its tunnel, and Started when this process began to look.
	Presence Presence
	Started  time.Time
	Now      time.Time
}

// Decide is pure: it sets the condition about the tunnel, and nothing else.
func Decide(s State) reconcile.Plan {
	mc := s.Cluster.DeepCopy()
	plan := reconcile.Plan{Object: mc}
	have := apimeta.FindStatusCondition(mc.Status.Conditions, connectv1alpha1.ConditionTunnelConnected)
	c := metav1.Condition{Type: connectv1alpha1.ConditionTunnelConnected, Status: metav1.ConditionFalse}
	since, settle := s.Presence.Since, settleLoss
	if since.IsZero() {
		since, settle = s.Started, settleStart
	}
	switch {
	case !s.Accepted:
		apimeta.RemoveStatusCondition(&mc.Status.Conditions, c.Type)
		return plan
	case s.Presence.Connected:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, connectv1alpha1.ReasonTunnelConnected, "The agent holds a tunnel to the hub"
	case s.Now.Sub(since) < settle:
		plan.RequeueAfter = settle - s.Now.Sub(since)
		return plan
	case s.Presence.Why != nil:
		c.Reason = connectv1alpha1.ReasonTunnelDisconnected
		c.Message = "The tunnel ended, and the agent has opened no other: " + excerpt.Of(s.Presence.Why.Error(), maxReason)
	case have != nil && have.Reason != connectv1alpha1.ReasonTunnelNeverConnected:
		if have.Status == metav1.ConditionFalse {
			return plan // it says more than this process knows
		}
		c.Reason, c.Message = connectv1alpha1.ReasonTunnelDisconnected, "The agent has opened no tunnel since the hub was started"
	default:
		c.Reason = connectv1alpha1.ReasonTunnelNeverConnected
		c.Message = fmt.Sprintf("The agent has never opened a tunnel: turn on the feature gate %s of its Klusterlet", connectv1alpha1.GateClusterProxy)
	}
	if have == nil || have.Status != c.Status || have.Reason != c.Reason || have.Message != c.Message {
		reconcile.SetCondition(&mc.Status.Conditions, c, s.Now)
	}
	return plan
}

// reporter writes the condition.
type reporter struct {
	s       *Server
	exec    *reconcile.Executor
	queue   *reconcile.Queue
	started time.Time
}

func newReporter(s *Server) *reporter {
	r := &reporter{
		s: s, exec: reconcile.NewExecutor(s.Client, Name, s.Clock), queue: reconcile.NewQueue(Name), started: s.Clock.Now(),
	}
	s.Registry.onChange = r.wake
	return r
}

func (r *reporter) wake(cluster string) { r.queue.Add(reconcile.Key{Name: cluster}) }

// Report reports all clusters, after this process began to lead.
func (s *Server) Report() {
	for _, c := range s.clusters.List() {
		s.report.wake(c.name)
	}
}

func (r *reporter) run(ctx context.Context) error {
	if err := r.s.clusters.WaitSynced(ctx); err != nil {
		return err
	}
	return reconcile.Loop{Name: Name, Workers: reporters, Reconcile: r.reconcile}.Run(ctx, r.queue)
}

// reconcile reads the cluster itself: nothing of it is kept but what a tunnel depends on.
func (r *reporter) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	c, found := r.s.clusters.Get(key)
	if !found || !r.s.leads() {
		return reconcile.Result{}, nil
	}
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, r.s.Client, clustersResource, "", key.Name)
	if err != nil {
		return reconcile.Result{}, reconcile.IgnoreNotFound(err)
	}
	return r.exec.Execute(ctx, mc, Decide(State{
		Cluster: mc, Accepted: c.accepted, Presence: r.s.Registry.Presence(key.Name), Started: r.started, Now: r.s.Clock.Now(),
	}))
}

// Forget removes the condition from all clusters, because the gate is off. What cannot be written is
// only logged: it is removed when a process of the hub leads the next time.
func Forget(ctx context.Context, client dynamic.Interface, c clock.PassiveClock, leads func() bool, log logr.Logger) {
	exec := reconcile.NewExecutor(client, Name, c)
	for o := (metav1.ListOptions{Limit: forgetPage}); leads(); {
		page, err := client.Resource(clustersResource).List(ctx, o)
		if apierrors.IsNotFound(err) { // a new hub has no clusters yet
			return
		}
		if err != nil {
			log.Error(err, "The conditions about tunnels stay")
			return
		}
		for i := range page.Items {
			mc, err := typed.FromUnstructured[clusterv1.ManagedCluster](&page.Items[i])
			if err == nil && apimeta.FindStatusCondition(mc.Status.Conditions, connectv1alpha1.ConditionTunnelConnected) != nil {
				_, err = exec.Execute(ctx, mc, Decide(State{Cluster: mc}))
			}
			if err != nil {
				log.Error(err, "The condition about the tunnel stays", "cluster", page.Items[i].GetName())
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return
		}
	}
}
