// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// joinToken reports a join token that the hub no longer accepts, while the agent has no
// certificate and so needs one. The token is only shown to the server that its own CA verifies.
func (a *agentCheck) joinToken(ctx context.Context) ([]Finding, error) {
	j, err := member.Read(ctx, a.o.Spoke, a.k.Name)
	if err != nil || j == nil || j.Registered || j.Hub == nil || j.Hub.Token == "" {
		return nil, err
	}
	hub, err := trust.Connect(trust.Endpoint{Server: j.Hub.Server, CA: j.Hub.CAData, ProxyURL: j.Hub.ProxyURL}, j.Hub.Token)
	if err != nil {
		return nil, err
	}
	err = token.Usable(ctx, hub, true)
	if err == nil || !apierrors.IsUnauthorized(err) && !apierrors.IsForbidden(err) {
		return nil, nil // a hub that does not answer has its own finding
	}
	cause := ""
	if e := unreadable("", err); e.Cause != "" {
		cause = e.Cause
	}
	return []Finding{failure(CodeSpokeToken, "the agent cannot ask to join: the hub rejects its join token", cause, a.join())}, nil
}

// proxies is what the Deployment of an agent says of proxies. It also applies to what the agent
// sends to its own cluster.
type proxies struct {
	httpproxy.Config
	// deployment is the name of the Deployment.
	deployment string
}

// readProxies reads the proxies of the Deployment that registers the cluster; those that come from
// other objects are not known.
func (a *agentCheck) readProxies(ctx context.Context) (proxies, error) {
	out := proxies{deployment: a.process}
	d, err := typed.Get[appsv1.Deployment](ctx, a.o.Spoke.Client, fleet.Deployments, a.k.AgentNamespace(), a.process)
	if apierrors.IsNotFound(err) {
		return out, nil
	}
	if err != nil {
		return out, fleet.Explain("reading deployment "+a.process, a.o.Spoke, err)
	}
	values := map[string]string{}
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, variable := range container.Env {
			values[variable.Name] = cmp.Or(values[variable.Name], variable.Value)
		}
	}
	either := func(name string) string { return cmp.Or(values[name], values[strings.ToLower(name)]) }
	out.HTTPProxy, out.HTTPSProxy, out.NoProxy = either("HTTP_PROXY"), either("HTTPS_PROXY"), either("NO_PROXY")
	return out, nil
}

// proxy reports proxies of the agent that cannot work, and those that it does not use.
func (a *agentCheck) proxy(ctx context.Context) ([]Finding, error) {
	set, err := a.readProxies(ctx)
	if err != nil {
		return nil, err
	}
	var out []Finding
	if host := loopbackProxy(a.proxyURL); host != "" {
		out = append(out, failure(CodeSpokeProxy, "the agent's proxy "+host+" is its own pod", "proxy-url of its kubeconfig names a loopback address",
			JoinByProxy.With("cluster", a.name(), "context", a.o.Spoke.Context, "hub", a.hub())))
	}
	if set.HTTPSProxy == "" && (set.HTTPProxy == "" || a.proxyURL != "") {
		return out, nil
	}
	if a.proxyURL == "" {
		out = append(out, a.proxyToHub(set)...)
	}
	own, err := a.o.Spoke.Client.Resource(fleet.Services).Namespace(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return out, nil //nolint:nilerr // without it the way to the agent's own API server is not known
	}
	address, _, _ := unstructured.NestedString(own.Object, "spec", "clusterIP")
	if through := proxyFor(set, &url.URL{Scheme: "https", Host: address}); through != nil {
		out = append(out, warning(CodeSpokeProxy, "the agent asks its own cluster through the proxy "+through.Host,
			"NO_PROXY of deployment "+set.deployment+" does not have "+address+", the API server of its cluster",
			a.setEnv(set, "NO_PROXY="+strings.TrimPrefix(set.NoProxy+","+address, ","))))
	}
	return out, nil
}

// proxyToHub reports what keeps the proxies of the Deployment from being used for the hub.
func (a *agentCheck) proxyToHub(set proxies) []Finding {
	u, err := url.Parse(a.server)
	if err != nil || u.Host == "" || trust.IsLoopback(a.server) {
		return nil // no variable sends what is for this machine through a proxy
	}
	open := set
	open.NoProxy = ""
	through, excepted := proxyFor(set, u), proxyFor(open, u)
	switch {
	case excepted == nil && set.HTTPSProxy != "":
		return []Finding{failure(CodeSpokeProxy, "the agent's proxy is no address", "HTTPS_PROXY of deployment "+set.deployment+" cannot be read",
			a.setEnv(set, "HTTPS_PROXY=<proxy>"))}
	case through != nil && loopbackProxy(through.String()) != "":
		return []Finding{failure(CodeSpokeProxy, "the agent's proxy "+through.Host+" is its own pod",
			"HTTPS_PROXY of deployment "+set.deployment+" names a loopback address", a.setEnv(set, "HTTPS_PROXY=<proxy>"))}
	case through != nil || apimeta.IsStatusConditionFalse(a.k.Status.Conditions, operatorv1.ConditionHubConnectionDegraded):
		return nil // it is used, or the agent needs none
	case set.HTTPSProxy == "":
		return []Finding{warning(CodeSpokeProxy, "the agent does not use its proxy for the hub", "deployment "+set.deployment+
			" has HTTP_PROXY and no HTTPS_PROXY, and the hub is an https address", a.setEnv(set, "HTTPS_PROXY="+shown(set.HTTPProxy)))}
	}
	kept := slices.DeleteFunc(strings.Split(set.NoProxy, ","), func(entry string) bool {
		open.NoProxy = entry
		return proxyFor(open, u) == nil
	})
	value := "NO_PROXY=" + strings.Join(kept, ",")
	if len(kept) == 0 {
		value = "NO_PROXY-" // kubectl deletes a variable that is named like this
	}
	return []Finding{warning(CodeSpokeProxy, "the agent does not use its proxy for the hub", "NO_PROXY of deployment "+set.deployment+" excepts "+u.Hostname(),
		a.setEnv(set, value))}
}

// proxyFor returns the proxy to an address; nil for none. What cannot be read is no proxy, as for
// the agent.
func proxyFor(set proxies, u *url.URL) *url.URL {
	through, err := set.ProxyFunc()(u)
	if err != nil {
		return nil
	}
	return through
}

// setEnv is the fix that changes a variable of the agent's Deployment.
func (a *agentCheck) setEnv(set proxies, value string) fleet.Fix {
	return SetProxy.On(a.o.Spoke, "namespace", a.k.AgentNamespace(), "name", set.deployment, "value", value)
}

// shown returns the address of a proxy for a printed command, or what to replace where it holds a
// password.
func shown(proxy string) string {
	if u, err := url.Parse(proxy); err != nil || u.User != nil {
		return "<proxy>"
	}
	return proxy
}

// loopbackProxy returns the host of a proxy that is only valid in the pod of who uses it; "" for
// any other.
func loopbackProxy(proxy string) string {
	u, err := url.Parse(proxy)
	if err != nil || !trust.IsLoopback(proxy) {
		return ""
	}
	return u.Host
}
