// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// lateCertificate is the remaining part of a certificate's lifetime below which it is reported
// as late; agents renew when a quarter is left.
const lateCertificate = 0.2

// spoke checks the agents of a cluster, one area for each.
func (c *checking) spoke(ctx context.Context) []Area {
	name := "spoke (" + c.o.Spoke.Where() + ")"
	reached := c.runAll(ctx, []check{c.reach(CodeSpokeReached, c.o.Spoke)})
	agents, err := typed.List[operatorv1.Klusterlet](ctx, c.o.Spoke.Client, fleet.Klusterlets, "", metav1.ListOptions{})
	switch {
	case err != nil && !apierrors.IsNotFound(err):
		return []Area{{name, append(reached, unreadable(CodeSpokeKlusterlet, fleet.Explain("listing klusterlets", c.o.Spoke, err)))}}
	case len(agents) == 0:
		join := fleet.JoinCluster.With("cluster", "", "context", c.o.Spoke.Context, "hub", c.hubContext())
		left := c.runAll(ctx, []check{(&site{checking: c, cluster: c.o.Spoke}).leavingAgent()})
		return []Area{{name, slices.Concat(reached, []Finding{failure(CodeSpokeAgent, "there is no agent", "", join)}, left)}}
	}
	var out []Area
	for i := range agents {
		a := &agentCheck{checking: c, k: &agents[i]}
		a.readIdentity(ctx)
		found := c.runAll(ctx, []check{
			{CodeSpokeAgent, a.runs}, {CodeSpokeKlusterlet, a.conditions}, {CodeSpokeIdentity, a.identity}, {CodeSpokeCertificate, a.certificate},
			{CodeSpokeHub, a.hubAnswers}, {CodeWorkOrphans, a.orphans},
			{CodeSpokeToken, a.joinToken}, {CodeSpokeProxy, a.proxy}, {CodeSpokeRights, a.rights},
		})
		area := name
		if len(agents) > 1 {
			area = "klusterlet " + a.k.Name + " on " + name
		}
		out = append(out, Area{area, append(reached, withoutEchoes(found, CodeSpokeKlusterlet, CodeSpokeAgent)...)})
		reached = nil
	}
	return out
}

// agentCheck checks one klusterlet.
type agentCheck struct {
	*checking
	k *operatorv1.Klusterlet
	// cluster is the agent's identity according to its certificate; "" before it has one. The
	// spec of the klusterlet may have been edited.
	cluster string
	// server is the address of its hub, and proxyURL the proxy to it in its kubeconfig; "" when
	// unknown or none.
	server, proxyURL string
	// process is the Deployment that registers the cluster.
	process string
}

// readIdentity reads the agent's identity. What cannot be read is reported by the checks that need
// it.
func (a *agentCheck) readIdentity(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	a.process = member.Deployments(ctx, a.o.Spoke, a.k)[0]
	for _, name := range []string{operatorv1.SecretBootstrapHubKubeconfig, operatorv1.SecretHubKubeconfig} {
		s, err := typed.Get[corev1.Secret](ctx, a.o.Spoke.Client, fleet.Secrets, a.k.AgentNamespace(), name)
		if err != nil {
			continue
		}
		if config, err := kubeconfig.ParseSecret(s.Data); err == nil {
			a.server, a.proxyURL = config.Server, config.ProxyURL
		}
		if name == operatorv1.SecretHubKubeconfig {
			a.cluster = string(s.Data[clusterv1.SecretKeyClusterName])
		}
	}
}

// name returns the cluster's name: the agent's identity, or before it has one the klusterlet's
// cluster name; "" when neither is known.
func (a *agentCheck) name() string {
	return fleet.OrElse(a.cluster, a.k.Spec.ClusterName)
}

// hub returns the context of the agent's hub; "" when unknown.
func (a *agentCheck) hub() string { return fleet.OrElse(a.hubContext(), a.contextAt(a.server)) }

// join is the fix that installs the agent again and keeps its certificate.
func (a *agentCheck) join() fleet.Fix {
	if a.k.IsHosted() {
		return RenewBootstrap.On(a.o.Spoke, "namespace", a.k.AgentNamespace())
	}
	return fleet.JoinCluster.With("cluster", a.name(), "context", a.o.Spoke.Context, "hub", a.hub())
}

// accept is the fix that answers the agent's request, which may take some seconds to appear.
func (a *agentCheck) accept() fleet.Fix { return AcceptOnHub.With("cluster", a.name(), "hub", a.hub()) }

// identity reports a klusterlet that names another cluster than its agent's.
func (a *agentCheck) identity(context.Context) ([]Finding, error) {
	if named := a.k.Spec.ClusterName; a.cluster != "" && named != "" && named != a.cluster {
		title := fmt.Sprintf("klusterlet/%s names cluster %s, but the agent is %s", a.k.Name, named, a.cluster)
		return []Finding{failure(CodeSpokeIdentity, title, "spec.clusterName was edited; the agent's certificate counts",
			PutNameBack.On(a.o.Spoke, "klusterlet", a.k.Name, "patch", fmt.Sprintf(`{"spec":{"clusterName":%q}}`, a.cluster)))}, nil
	}
	return nil, nil
}

// hubContext returns the context of the hub; "" when the caller named none.
func (c *checking) hubContext() string {
	if c.o.Hub == nil {
		return ""
	}
	return c.o.Hub.Context
}

// runs checks the agent's Deployments.
func (a *agentCheck) runs(ctx context.Context) ([]Finding, error) {
	list, err := typed.List[appsv1.Deployment](ctx, a.o.Spoke.Client, fleet.Deployments, a.k.AgentNamespace(), metav1.ListOptions{})
	if err != nil {
		return nil, fleet.Explain("listing deployments of "+a.k.AgentNamespace(), a.o.Spoke, err)
	}
	var out []Finding
	halfway := betweenLayouts(list, a.k.Name)
	for i := range list {
		d := &list[i]
		if !strings.HasPrefix(d.Name, a.k.Name+"-") {
			continue
		}
		ok, ready := workload.RolledOut(d)
		f := Finding{Code: CodeSpokeAgent, Severity: SeverityOK, Title: d.Name + " " + ready}
		if !ok {
			f.Severity, f.Fix = SeverityError, workload.DescribeDeployment.On(a.o.Spoke, "namespace", d.Namespace, "name", d.Name)
			if b := workload.Blocker(ctx, a.o.Spoke, d.Namespace, d.Name); b != nil {
				f.Cause = b.Cause
				if b.Fix != nil {
					f.Fix = b.Fix
				}
			}
		}
		if halfway && d.Name == operatorv1.AgentDeployment(a.k.Name) {
			// With a pod it would be a second agent.
			f.Cause, f.Fix = "a change to the compact layout was interrupted; the Deployments of the operator end first", a.join()
		}
		out = append(out, f)
	}
	if out == nil {
		out = []Finding{failure(CodeSpokeAgent, "the agent has no deployment in "+a.k.AgentNamespace(), "", a.join())}
	}
	return out, nil
}

// betweenLayouts reports whether a join that makes one process of an agent was interrupted: its
// Deployment has no pod yet, and those of the operator are still there.
func betweenLayouts(list []appsv1.Deployment, klusterlet string) bool {
	claimed, apart := false, false
	for i := range list {
		d := &list[i]
		claimed = claimed || d.Name == operatorv1.AgentDeployment(klusterlet) && member.RunsOurs(d) == "run" && workload.ScaledDown(d)
		apart = apart || slices.Contains(operatorv1.AgentDeployments(klusterlet, operatorv1.InstallModeDefault), d.Name) && member.RunsOurs(d) != ""
	}
	return claimed && apart
}

// conditions reports each condition of the klusterlet that is not as it should be.
func (a *agentCheck) conditions(context.Context) ([]Finding, error) {
	var out []Finding
	for _, condition := range a.k.Status.Conditions {
		bad := metav1.ConditionFalse
		if strings.HasSuffix(condition.Type, "Degraded") {
			bad = metav1.ConditionTrue
		}
		if condition.Status == bad {
			b := fleet.BlockedBy(&condition, nil)
			out = append(out, failure(CodeSpokeKlusterlet, "the agent is unhealthy",
				b.Cause+", for "+duration.HumanDuration(a.run.Now().Sub(b.Since)), a.fixFor(&condition)))
		}
	}
	switch {
	case out != nil:
		return out, nil
	case apimeta.FindStatusCondition(a.k.Status.Conditions, operatorv1.ConditionApplied) == nil:
		return []Finding{failure(CodeSpokeKlusterlet, "the agent has not observed klusterlet/"+a.k.Name, "", a.logs())}, nil
	}
	return good(CodeSpokeKlusterlet, "klusterlet/%s of cluster %s is well", a.k.Name, fleet.OrElse(a.name(), "<name>")), nil
}

// logs is the fix that reads the agent's logs.
func (a *agentCheck) logs() fleet.Fix {
	return fleet.ShowLogs.On(a.o.Spoke, "namespace", a.k.AgentNamespace(), "name",
		fleet.OrElse(a.process, operatorv1.AgentDeployment(a.k.Name)))
}

// fixFor returns what helps against a condition of the klusterlet: a join repairs lost or wrong
// access to the hub, and an agent that waits for its request needs that accepted.
func (a *agentCheck) fixFor(condition *metav1.Condition) fleet.Fix {
	switch {
	case condition.Type == operatorv1.ConditionReadyToApply:
		return member.RenewManaged.On(a.o.Spoke, "namespace", a.k.AgentNamespace())
	case condition.Type == operatorv1.ConditionSpecSupported:
		return ShowYAML.On(a.o.Spoke, "resource", "klusterlet", "name", a.k.Name)
	case condition.Type != operatorv1.ConditionHubConnectionDegraded:
		return a.logs()
	case strings.Contains(condition.Reason, operatorv1.ReasonBootstrapSecretFunctional):
		return a.accept()
	}
	return a.join()
}

// access reads the agent's own access to the hub; nil when there is none yet.
func (a *agentCheck) access(ctx context.Context) (*corev1.Secret, error) {
	s, err := typed.Get[corev1.Secret](ctx, a.o.Spoke.Client, fleet.Secrets, a.k.AgentNamespace(), operatorv1.SecretHubKubeconfig)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return s, fleet.Explain("reading secret "+a.k.AgentNamespace()+"/"+operatorv1.SecretHubKubeconfig, a.o.Spoke, err)
}

func (a *agentCheck) certificate(ctx context.Context) ([]Finding, error) {
	s, err := a.access(ctx)
	if err != nil {
		return nil, err
	}
	if s == nil || len(s.Data["tls.crt"]) == 0 {
		cause := "the hub has not accepted it, or its request is pending"
		return []Finding{warning(CodeSpokeCertificate, "the agent has no certificate yet", cause, a.accept())}, nil
	}
	block, _ := pem.Decode(s.Data["tls.crt"])
	if block == nil {
		return []Finding{failure(CodeSpokeCertificate, "the agent's certificate cannot be read", "",
			DropCertificate.On(a.o.Spoke, "namespace", a.k.AgentNamespace(), "secret", s.Name))}, nil
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fleet.Fail("reading the agent's certificate", err, nil)
	}
	return a.checkLifetime(cert), nil
}

// checkLifetime checks the remaining lifetime of a certificate.
func (a *agentCheck) checkLifetime(cert *x509.Certificate) []Finding {
	left := cert.NotAfter.Sub(a.run.Now())
	title := fmt.Sprintf("certificate of %s, good for %s", cert.Subject.CommonName, duration.HumanDuration(left))
	switch {
	case left <= 0:
		return []Finding{failure(CodeSpokeCertificate, "the agent's certificate expired "+duration.HumanDuration(-left)+" ago",
			"it asks for another, which has to be accepted", a.accept())}
	case float64(left) < lateCertificate*float64(cert.NotAfter.Sub(cert.NotBefore)):
		return []Finding{warning(CodeSpokeCertificate, title, "it should have been renewed when a quarter of its life was left, at "+
			cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore)/4).UTC().Format(time.RFC3339), a.logs())}
	}
	return good(CodeSpokeCertificate, "%s", title)
}

// unreached says of an agent's hub what does not work, for each part of a connection.
var unreached = map[trust.Layer]string{
	trust.LayerName:       "the name of the hub at %s, or of the proxy to it, is not known to this machine",
	trust.LayerConnection: "the hub at %s does not answer this machine: nothing takes connections there, or at the proxy to it",
	trust.LayerTLS:        "what answers this machine at %s cannot show that it is the hub that the agent knows",
	trust.LayerAnswer:     "the hub at %s does not answer this machine as the agent expects",
}

// hubAnswers asks the hub, from here, at the agent's address and with the agent's CA.
func (a *agentCheck) hubAnswers(ctx context.Context) ([]Finding, error) {
	s, err := a.access(ctx)
	if err != nil || s == nil {
		return nil, err
	}
	config, err := kubeconfig.ParseSecret(s.Data)
	if err != nil {
		return nil, fleet.Fail("reading the agent's kubeconfig", err, DropCertificate.On(a.o.Spoke, "namespace", a.k.AgentNamespace(), "secret", s.Name))
	}
	endpoint := trust.Endpoint{Server: config.Server, CA: config.CAData, ProxyURL: config.ProxyURL}
	if _, err := trust.Root(ctx, endpoint, config.TLSServerName); err != nil {
		return []Finding{warning(CodeSpokeHub, fmt.Sprintf(unreached[trust.LayerOf(err)], config.Server), fleet.OneLine(err.Error()),
			MoveAgent.With("cluster", a.name(), "context", a.o.Spoke.Context, "hub", a.hub()))}, nil
	}
	return good(CodeSpokeHub, "the hub answers at %s", config.Server), nil
}

// orphans reports records of works that the agent misses on its hub: the objects are still there.
func (a *agentCheck) orphans(ctx context.Context) ([]Finding, error) {
	list, err := typed.List[workv1.AppliedManifestWork](ctx, a.o.Spoke.Client, fleet.AppliedManifestWorks, "", metav1.ListOptions{})
	if err != nil {
		return nil, fleet.Explain("listing appliedmanifestworks", a.o.Spoke, err)
	}
	var names, records []string
	var since time.Time
	for i := range list {
		at := list[i].Status.EvictionStartTime
		if at == nil || list[i].DeletionTimestamp != nil {
			continue
		}
		names, records = append(names, list[i].Spec.ManifestWorkName), append(records, list[i].Name)
		if since.IsZero() || at.Time.Before(since) {
			since = at.Time
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	title := fmt.Sprintf("%s left over: missing on the hub for %s, and the objects are still here", fleet.Many(len(names), "work"),
		duration.HumanDuration(a.run.Now().Sub(since)))
	return []Finding{warning(CodeWorkOrphans, title, fleet.Listed(names)+"; the agent removes the objects when its grace period is over",
		DropRecord.On(a.o.Spoke, "record", records[0]))}, nil
}
