// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
)

// Served returns an error unless the hub leads to its clusters: a refusal while its feature gate is off. It sends one
// request.
func Served(ctx context.Context, hub *fleet.Cluster) error {
	_, err := hub.Get(ctx, "/apis/"+connectv1alpha1.GroupVersion.String())
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		if err := fleet.NeedHub(ctx, hub); err != nil {
			return err
		}
		return &fleet.Error{Kind: fleet.Refused, Message: hub.String() + " does not lead to its clusters",
			Cause: "its feature gate " + connectv1alpha1.GateClusterProxy + " is off", Fix: OpenHub.On(hub), Err: err}
	case apierrors.IsServiceUnavailable(err):
		return fleet.Fail(hub.String()+" does not lead to its clusters at the moment", err, fleet.CheckHub.On(hub))
	}
	return fleet.Explain("looking for the API "+connectv1alpha1.GroupName+" on "+hub.String(), hub, err)
}

// Reach returns nil if the API server of a managed cluster answers this way, and otherwise why it does not. It sends one
// request, and a second one if the hub has no such API or the cluster no such account.
func Reach(ctx context.Context, hub *fleet.Cluster, way Way) error {
	ctx, cancel := context.WithTimeout(ctx, fleet.ReachTimeout)
	defer cancel()
	if err := get(ctx, hub, way, "/version"); err != nil {
		return explain(ctx, hub, way, err)
	}
	return nil
}

// get sends a request to a managed cluster.
func get(ctx context.Context, hub *fleet.Cluster, way Way, path string) error {
	_, err := request(ctx, hub, way.path()+path)
	return err
}

// request sends a request to the hub. The error has what the answer says: the client reads no Status by itself.
func request(ctx context.Context, hub *fleet.Cluster, path string) ([]byte, error) {
	body, err := hub.Get(ctx, path)
	if err == nil {
		return body, nil
	}
	if status := statusIn(body); status != nil {
		return nil, &apierrors.StatusError{ErrStatus: *status}
	}
	return nil, err
}

// statusIn returns the Status that an answer is; nil if it is none.
func statusIn(body []byte) *metav1.Status {
	var status metav1.Status
	if json.Unmarshal(body, &status) != nil || status.Kind != "Status" || status.Status != metav1.StatusFailure {
		return nil
	}
	return &status
}

// explain says why a request to a managed cluster failed.
func explain(ctx context.Context, hub *fleet.Cluster, way Way, err error) error {
	cluster := way.Cluster
	subject := "cluster " + cluster + " cannot be reached through " + hub.String()
	if way.Account != "" {
		subject = "cluster " + cluster + " cannot be used as " + way.Account + " through " + hub.String()
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fleet.Explain("asking cluster "+cluster, hub, err)
	}
	if out := explainWay(hub, cluster, subject, err); out != nil {
		return out
	}
	if way.Account != "" {
		if out := explainAccount(ctx, hub, way, subject, err); out != nil {
			return out
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		if served := Served(ctx, hub); served != nil {
			return served
		}
	case apierrors.IsForbidden(err):
		return failed(subject, status, err, GrantReach.On(hub, "cluster", cluster))
	case apierrors.IsServiceUnavailable(err):
		return failed(subject, status, err, fleet.CheckHub.On(hub))
	}
	return fleet.Explain("asking cluster "+cluster, hub, err)
}

// explainWay says why no request reaches a cluster through its hub; nil if the answer says nothing of that.
func explainWay(hub *fleet.Cluster, cluster, subject string, err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	switch causeOf(status) {
	case connectv1alpha1.CauseUnknownCluster:
		return naming.NoCluster(cluster, hub)
	case connectv1alpha1.CauseNotAccepted:
		return failed(subject, status, err, fleet.AcceptCluster.On(hub, "cluster", cluster))
	case connectv1alpha1.CauseNoTunnel:
		return failed(subject, status, err, OpenAgent.With("cluster", cluster, "context", "", "hub", hub.Context))
	case connectv1alpha1.CauseTunnelBroken, connectv1alpha1.CauseRedirected:
		return failed(subject, status, err, CheckReach.On(hub, "cluster", cluster))
	case connectv1alpha1.CauseTooManyStreams:
		return failed(subject, status, err, fleet.Advice("end some of the requests, or try again in a moment"))
	}
	return nil
}

// explainAccount says why a request as an account failed; nil if it is not about the account.
func explainAccount(ctx context.Context, hub *fleet.Cluster, way Way, subject string, err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	switch causeOf(status) {
	case connectv1alpha1.CauseUnknownAccount:
		_, asked := hub.Client.Resource(fleet.ManagedAccounts).Namespace(way.Cluster).Get(ctx, way.Account, metav1.GetOptions{})
		if apierrors.IsNotFound(asked) {
			return naming.NoAccount(way.Account, way.Cluster, hub)
		}
		return failed(subject, status, err, fleet.ShowAddOn.On(hub, "addon", authenticationv1beta1.AddOnName, "cluster", way.Cluster))
	case connectv1alpha1.CauseAccountRefused:
		return failed(subject, status, err, naming.ListAccounts.On(hub, "cluster", way.Cluster))
	case connectv1alpha1.CauseAgentTooOld:
		return failed(subject, status, err, UpgradeAgent.With("cluster", way.Cluster, "hub", hub.Context))
	}
	switch d := status.Status().Details; {
	case !apierrors.IsForbidden(err) || d == nil:
	case d.Kind == connectv1alpha1.ResourceManagedServiceAccounts:
		return failed(subject, status, err, GrantAccount.On(hub, "cluster", way.Cluster, "account", way.Account))
	case d.Kind == fleet.ServiceAccounts.Resource: // of an agent with narrow rights
		return failed(subject, status, err, LetAgentAct.With("account", way.Account, "namespace", operatorv1.NamespaceAgentAddOn))
	}
	return nil
}

// failed returns the error with what the server says about it.
func failed(subject string, status apierrors.APIStatus, err error, fix fleet.Fix) error {
	return &fleet.Error{Kind: fleet.Failed, Message: subject, Cause: fleet.OneLine(status.Status().Message), Fix: fix, Err: err}
}

// causeOf returns the type of the cause of an answer that the hub or the agent made; "" for one of an API server.
func causeOf(status apierrors.APIStatus) metav1.CauseType {
	s := status.Status()
	if s.Details == nil || s.Details.Kind != connectv1alpha1.ResourceManagedClusters || len(s.Details.Causes) == 0 {
		return ""
	}
	return s.Details.Causes[0].Type
}

// describe returns what is told of a failure in one line.
func describe(err error) string {
	var e *fleet.Error
	if errors.As(err, &e) && e.Cause != "" {
		return e.Cause
	}
	return fleet.OneLine(fmt.Sprint(err))
}
