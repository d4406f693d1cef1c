// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
)

// TestAddOns runs a user's own add-on on a fleet, from the first cluster to the last, and then
// the one that gives the hub identities on clusters.
func TestAddOns(t *testing.T) {
	a := &addOns{fleet: startFleetWith(t, []string{"helloworld-addon", serviceAccounts}, "c1", "c2"), before: map[string][]string{}}
	story(t,
		chapter{"a hub and two clusters", a.join},
		chapter{"make deploy-example", a.deploy},
		chapter{"one cluster has it", a.enable},
		chapter{"a placement brings it to the other, too", a.place},
		chapter{"a configuration goes to the canary first", a.canary},
		chapter{"a cluster has a configuration of its own", a.configure},
		chapter{"the report of the fleet is read in a browser", a.report},
		chapter{"its certificate of seconds is renewed unattended", a.rotate},
		chapter{"a job cleans up before it leaves a cluster", a.disable},
		chapter{"make clean-example leaves nothing behind", a.clean},
		chapter{"the same add-on without code", a.template},
		chapter{"its template, and what was made of it, leaves", a.templateLeaves},
		chapter{"the hub has an identity on a cluster, with some rights", a.identity},
		chapter{"the identity and its rights leave", a.identityLeaves},
	)
}

// addOns is the state that the chapters of TestAddOns share.
type addOns struct {
	*fleet
	// before is what each cluster held after all had joined.
	before map[string][]string
}

// Namespaces of the add-on's agent.
const (
	helloworld      = "helloworld"
	helloworldAgent = "deployment/helloworld-agent"
	// helloworldTemplate is the same for the add-on from a template.
	helloworldTemplate = "helloworld-template"
	// placedNamespace is the namespace unless a user configures another.
	placedNamespace = "open-cluster-management-agent-addon"
)

func (a *addOns) join(t *testing.T) {
	a.ocm(t, "hub", "init", "--context", "hub")
	for _, c := range a.managed {
		a.ocm(t, "join", c.Name, "--context", c.Name, "--hub-context", "hub", "--accept")
	}
	kubectl(t, a.hub, "label", "managedcluster", "c2", "ring=canary")
	for _, c := range a.managed {
		a.before[c.Name] = a.held(t, c)
	}
}

func (a *addOns) deploy(t *testing.T) {
	a.make(t, "deploy-example", "HUB_KUBECONFIG_CONTEXT=hub")
	kubectl(t, a.hub, "-n", "helloworld-addon", "wait", "--for=condition=Available", "deployment/helloworld-controller", "--timeout=180s")
}

func (a *addOns) enable(t *testing.T) {
	a.ocm(t, "addon", "enable", helloworld, "-c", "c1", "--install-namespace", "default", "--context", "hub", "--wait")
	a.greet(t, "c1", "greeting")
	a.greeted(t, "c1", "default", "greeting")
	require.Regexp(t, `(?m)^`+helloworld+`\s`, a.ocm(t, "addon", "list", "--context", "hub"))
	t.Logf("measured: the agent of the add-on holds %s", held(t, a.on("c1"), "helloworld-addon"))
}

// available waits until an add-on works on a cluster.
func (a *addOns) available(t *testing.T, name, cluster string) {
	t.Helper()
	of := condition(t, a.hub, "managedclusteraddon", name, "-n", cluster)
	eventually(t, func() error {
		if status := of("Available"); status != "True" {
			return fmt.Errorf("available is %q", status)
		}
		return nil
	})
}

// greet creates a ConfigMap on the hub for the add-on to copy.
func (a *addOns) greet(t *testing.T, cluster, name string) {
	t.Helper()
	kubectl(t, a.hub, "-n", cluster, "create", "configmap", name, "--from-literal=hello="+cluster)
}

// greeted waits until the cluster has the copy.
func (a *addOns) greeted(t *testing.T, cluster, namespace, name string) {
	t.Helper()
	eventually(t, func() error {
		out, err := a.on(cluster).Kubectl(t.Context(), "-n", namespace, "get", "configmap", name, "-o", "jsonpath={.data.hello}")
		if err == nil && out != cluster {
			err = fmt.Errorf("it says %q", out)
		}
		return err
	})
}

func (a *addOns) place(t *testing.T) {
	a.ocm(t, "clusterset", "bind", "global", "-n", "default", "--context", "hub")
	a.ocm(t, "placement", "create", "everywhere", "-n", "default", "--group", "canary=ring=canary", "--context", "hub")
	kubectl(t, a.hub, "wait", "--for=condition=PlacementSatisfied", "placement/everywhere", "-n", "default", "--timeout=180s")
	a.ocm(t, "addon", "enable", helloworld, "--placement", "default/everywhere", "--context", "hub")
	a.available(t, helloworld, "c2")
	a.greet(t, "c2", "greeting")
	a.greeted(t, "c2", placedNamespace, "greeting")
	kubectl(t, a.on("c1"), "-n", "default", "get", helloworldAgent) // it stays in the namespace of its user
}

// loud is the configuration of the fleet; it does not change the agents' namespaces.
const loud = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {name: fleet, namespace: default}
spec:
  agentInstallNamespace: ""
  customizedVariables: [{name: Verbosity, value: "LEVEL"}]
`

// rollOut is the rollout of the guide, with a canary that must succeed for a few seconds.
const rollOut = `{"spec":{"installStrategy":{"type":"Placements","placements":[{"namespace":"default","name":"everywhere",
"configs":[{"group":"addon.open-cluster-management.io","resource":"addondeploymentconfigs","namespace":"default","name":"fleet"}],
"rolloutStrategy":{"type":"ProgressivePerGroup","progressivePerGroup":{
"mandatoryDecisionGroups":[{"groupName":"canary"}],"minSuccessTime":"5s","progressDeadline":"10m"}}}]}}}`

func (a *addOns) canary(t *testing.T) {
	kubectl(t, a.hub, "apply", "-f", text(t, "one.yaml", strings.ReplaceAll(loud, "LEVEL", "1")))
	kubectl(t, a.hub, "patch", "clustermanagementaddon", helloworld, "--type=merge", "-p", rollOut)
	a.loudness(t, "c1", "default", "1")
	a.loudness(t, "c2", placedNamespace, "1")

	kubectl(t, a.hub, "apply", "-f", text(t, "two.yaml", strings.ReplaceAll(loud, "LEVEL", "2")))
	a.loudness(t, "c2", placedNamespace, "2")
	a.loudness(t, "c1", "default", "2")
	took := a.declared(t, "c1").Sub(a.declared(t, "c2"))
	require.GreaterOrEqual(t, took, 5*time.Second, "it waits for the canary")
	t.Logf("measured: the other cluster followed the canary after %s", took)
	const completed = `jsonpath={.status.conditions[?(@.type=="Progressing")].reason}`
	for _, c := range a.managed {
		eventually(t, func() error {
			if reason := kubectl(t, a.hub, "-n", c.Name, "get", "managedclusteraddon", helloworld, "-o", completed); reason != "Completed" {
				return fmt.Errorf("the rollout on %s is %s", c.Name, reason)
			}
			return nil
		})
	}
}

// declared returns when the hub last wrote the spec of the add-on's work for a cluster.
func (a *addOns) declared(t *testing.T, cluster string) time.Time {
	t.Helper()
	var work metav1.PartialObjectMetadata
	raw := kubectl(t, a.hub, "-n", cluster, "get", "manifestwork", "addon-"+helloworld+"-deploy-0", "--show-managed-fields", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(raw), &work))
	var out time.Time
	for _, f := range work.ManagedFields {
		if f.Subresource == "" && strings.Contains(f.FieldsV1.GetRawString(), `"f:spec"`) && f.Time.After(out) {
			out = f.Time.Time
		}
	}
	require.False(t, out.IsZero(), raw)
	return out
}

// loudness waits until the agent of a cluster runs at a log level.
func (a *addOns) loudness(t *testing.T, cluster, namespace, level string) {
	t.Helper()
	eventually(t, func() error { return a.speaks(t, cluster, namespace, level) })
}

// speaks returns an error that tells how the agent's arguments differ from a level.
func (a *addOns) speaks(t *testing.T, cluster, namespace, level string) error {
	out, err := a.on(cluster).Kubectl(t.Context(), "-n", namespace, "get", helloworldAgent, "-o", "jsonpath={.spec.template.spec.containers[0].args}")
	if err == nil && !strings.Contains(out, `"--verbosity=`+level+`"`) {
		err = errors.New("its arguments are " + out)
	}
	return err
}

// narrow is a configuration for one cluster.
const narrow = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {name: narrow, namespace: default}
spec:
  agentInstallNamespace: ""
  resourceRequirements:
  - containerID: deployments:helloworld-agent:agent
    resources: {requests: {memory: 16Mi}, limits: {memory: 48Mi}}
`

func (a *addOns) configure(t *testing.T) {
	a.ocm(t, "addon", "enable", helloworld, "-c", "c1", "--config", text(t, "narrow.yaml", narrow), "--context", "hub")
	limit := func(c *nodes.Cluster, namespace string) string {
		return kubectl(t, c, "-n", namespace, "get", helloworldAgent, "-o", "jsonpath={.spec.template.spec.containers[0].resources.limits.memory}")
	}
	eventually(t, func() error {
		if got := limit(a.on("c1"), "default"); got != "48Mi" {
			return fmt.Errorf("its limit is %s", got)
		}
		return nil
	})
	require.Equal(t, "64Mi", limit(a.on("c2"), placedNamespace), "for one cluster only")
	kubectl(t, a.on("c1"), "-n", "default", "rollout", "status", helloworldAgent, "--timeout=180s")
}

func (a *addOns) rotate(t *testing.T) {
	require.NoError(t, a.hub.SignFor(t.Context(), short))
	c := a.on("c2")
	lasting := a.credential(t, c)
	kubectl(t, c, "-n", placedNamespace, "delete", "secret", helloworld+"-hub-kubeconfig")
	first := a.credentialAfter(t, c, lasting)
	agent := processes(t, c, "helloworld-addon")
	require.Len(t, agent, 1)
	second := a.credentialAfter(t, c, first)
	a.credentialAfter(t, c, second)
	a.greet(t, "c2", "renewed") // by a certificate that the first two could not stand in for
	a.greeted(t, "c2", placedNamespace, "renewed")
	require.Equal(t, agent[0].PID, processes(t, c, "helloworld-addon")[0].PID, "without a restart")
	require.NotContains(t, kubectl(t, a.hub, "get", "csr", "-l", "open-cluster-management.io/addon-name="+helloworld, "--no-headers"), "Denied")
	require.NoError(t, a.hub.SignFor(t.Context(), 0))
}

// credential returns the certificate of the add-on's agent, or "".
func (a *addOns) credential(t *testing.T, c *nodes.Cluster) string {
	t.Helper()
	out, err := c.Kubectl(t.Context(), "-n", placedNamespace, "get", "secret", helloworld+"-hub-kubeconfig", "-o", `jsonpath={.data.tls\.crt}`)
	if err != nil {
		return ""
	}
	return out
}

// credentialAfter waits for a certificate other than before.
func (a *addOns) credentialAfter(t *testing.T, c *nodes.Cluster, before string) string {
	t.Helper()
	var now string
	took := eventually(t, func() error {
		if now = a.credential(t, c); now == "" || now == before {
			return errAbsent
		}
		return nil
	})
	t.Logf("measured: another certificate after %s, of a life of %s", took, short)
	return now
}

func (a *addOns) disable(t *testing.T) {
	c := a.on("c1")
	a.ocm(t, "addon", "disable", helloworld, "-c", "c1", "--context", "hub", "--yes")
	for _, gone := range []string{
		helloworldAgent,
		"configmap/greeting",
		"job/helloworld-cleanup",
		"lease/" + helloworld,
		"secret/" + helloworld + "-hub-kubeconfig",
	} {
		eventually(t, func() error {
			if out := kubectl(t, c, "-n", "default", "get", gone, "--ignore-not-found", "-o", "name"); out != "" {
				return errors.New(out + " is there")
			}
			return nil
		})
	}
	kubectl(t, a.hub, "-n", "c1", "get", "configmap", "greeting") // what it copied from is not its own
	a.available(t, helloworld, "c2")
}

func (a *addOns) clean(t *testing.T) {
	a.make(t, "clean-example", "HUB_KUBECONFIG_CONTEXT=hub")
	a.requireNone(t, helloworld)
}

// requireNone waits until the clusters hold what they held before the add-on, and checks
// the same of the hub.
func (a *addOns) requireNone(t *testing.T, name string) {
	t.Helper()
	for _, c := range a.managed {
		a.holds(t, c, a.before[c.Name])
	}
	require.Empty(t, kubectl(t, a.hub, "get", "managedclusteraddons,manifestworks", "-A", "-o", "name"))
	require.Empty(t, kubectl(t, a.hub, "get", "roles,rolebindings", "-A", "-l", "open-cluster-management.io/addon-name="+name, "-o", "name"))
}

func (a *addOns) template(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join(root, "examples/helloworld-template"))
	require.NoError(t, err)
	kubectl(t, a.hub, "apply", "-f", dir)
	for _, c := range a.managed {
		kubectl(t, a.hub, "label", "managedcluster", c.Name, "helloworld=yes")
	}
	for _, c := range a.managed {
		a.available(t, helloworldTemplate, c.Name)
		a.greet(t, c.Name, "without-code")
		a.greeted(t, c.Name, placedNamespace, "without-code")
	}
	require.Regexp(t, `(?m)^`+helloworldTemplate+`\s`, a.ocm(t, "addon", "list", "--context", "hub"))
}

func (a *addOns) templateLeaves(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join(root, "examples/helloworld-template"))
	require.NoError(t, err)
	kubectl(t, a.hub, "label", "managedcluster", "c1", "helloworld-")
	a.holds(t, a.on("c1"), a.before["c1"])
	a.available(t, helloworldTemplate, "c2")
	kubectl(t, a.hub, "delete", "-f", dir, "--timeout=180s")
	a.requireNone(t, helloworldTemplate)
}
