// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/access"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// endPatience is how long the processes of an agent may take to end, before the rest is removed
// under them: a pod on a node that is gone never ends.
const endPatience = time.Minute

// State is the input of Decide.
type State struct {
	// Parts are what all agents of the cluster share.
	shared.Parts
	Now        time.Time
	Klusterlet *operatorv1.Klusterlet
	// Unreadable is why the spec of the Klusterlet cannot be read; empty when it can.
	Unreadable string
	// Lease is the process that serves the Klusterlet in itself; empty if none does.
	Lease string
	// Holder is another Klusterlet whose agent has the namespace; empty if it is free.
	Holder string
	// Compact makes one process of every agent.
	Compact bool
	// Image is the image of this program.
	Image string
	// Rights are the applies of the agent's ServiceAccounts and rights.
	Rights []reconcile.Write
	// Deployments are those with the label of the Klusterlet; Written says which of them are as
	// this loop left them.
	Deployments map[reconcile.Key]Deployment
	Written     map[reconcile.Key]bool
	// Namespaces are those that concern the Klusterlet, by name; Secrets are the kubeconfigs in
	// them, by namespace and name.
	Namespaces map[string]Namespace
	Secrets    map[string]map[string]Secret
	// PullSource is the image pull secret beside this process, nil without one; PullCopies are
	// those of other namespaces.
	PullSource *Secret
	PullCopies map[string]Secret
	// BootstrapSecret and HubSecret are the data of the agent's secrets, nil when absent;
	// Bootstrap and Hub are what the hub grants to them.
	BootstrapSecret, HubSecret map[string][]byte
	Bootstrap, Hub             access.Answer
}

// Stage is a part of a plan; Reason is that of Applied False when it fails.
type Stage struct {
	Writes []reconcile.Write
	Reason string
}

// Plan is what a pass does.
type Plan struct {
	reconcile.Plan
	// Stages come before the rest of the plan.
	Stages []Stage
	// Remove is true when the agent is to be removed from Namespace: first the Deployments in
	// End. While Await is true, the rest stays.
	Remove, Await bool
	End           []Deployment
	Namespace     string
}

// Decide returns what to write for a Klusterlet that this loop serves. It is a pure function.
func Decide(s State) Plan {
	if s.Klusterlet.DeletionTimestamp != nil {
		return s.removal()
	}
	next := s.Klusterlet.DeepCopy()
	if !slices.Contains(next.Finalizers, operatorv1.FinalizerKlusterlet) {
		// It protects what the next pass writes.
		next.Finalizers = append(next.Finalizers, operatorv1.FinalizerKlusterlet)
		return Plan{Plan: reconcile.Plan{Object: next}}
	}
	asked := settings.Read(s.Klusterlet)
	asked.Invalid = cmp.Or(s.Unreadable, asked.Invalid)
	asked.Invalid = cmp.Or(asked.Invalid, s.misplaced())
	addUnsupported(&asked, s.Klusterlet.Spec)
	p := Plan{}
	next.Status.ObservedGeneration = next.Generation
	var wanted []*unstructured.Unstructured
	problem := asked.Invalid
	if problem == "" {
		var err error
		if wanted, p.Stages, err = s.install(asked); err != nil {
			problem = err.Error()
		}
		if problem == "" && s.cluster(asked) == "" && !s.isSingleton() {
			problem = "works are applied once the cluster has a name: the spec has none, and Secret hub-kubeconfig-secret neither"
		}
	}
	s.setConditions(next, asked, problem)
	p.RequeueAfter = s.setConnection(next, asked)
	if problem == "" {
		s.setInventory(next, wanted)
		if s.isAvailable(wanted) {
			p.Writes = s.leftovers(wanted)
		}
	}
	p.Object = next
	return p
}

// misplaced returns why the agent cannot run where the spec says; empty when it can.
func (s State) misplaced() string {
	switch {
	case s.isHosted():
		return "deployOption.mode " + string(s.Klusterlet.Spec.DeployOption.Mode) + " is not supported: the agent runs on the cluster that it manages"
	case s.Holder != "":
		return "namespace " + s.agentNamespace() + " is that of klusterlet/" + s.Holder + ": set spec.namespace to another one"
	case s.agentNamespace() == operatorv1.NamespaceAgentAddOn:
		return "namespace " + s.agentNamespace() + " is that of add-ons: set spec.namespace to another one"
	}
	return ""
}

// addUnsupported adds what cannot be said on the command line of an agent.
func addUnsupported(r *settings.Asked, s operatorv1.KlusterletSpec) {
	r.AddUnsupported(len(r.Settings.Labels) > 0, "registrationConfiguration.clusterLabels")
	r.AddUnsupported(slices.ContainsFunc(s.ExternalServerURLs, func(u operatorv1.ServerURL) bool { return len(u.CABundle) > 0 }),
		"externalServerURLs.caBundle")
	slices.Sort(r.Unsupported)
}

func (s State) isHosted() bool {
	mode := s.Klusterlet.Spec.DeployOption.Mode
	return mode == operatorv1.InstallModeHosted || mode == operatorv1.InstallModeSingletonHosted
}

// isSingleton reports whether one process is the whole agent.
func (s State) isSingleton() bool {
	mode := s.Klusterlet.Spec.DeployOption.Mode
	return s.Compact || mode == operatorv1.InstallModeSingleton || mode == operatorv1.InstallModeSingletonHosted
}

func (s State) isApart() bool { return !s.isSingleton() }

// agentNamespace is where the agent runs.
func (s State) agentNamespace() string { return s.Klusterlet.AgentNamespace() }

func (s State) processes() []process {
	if s.isSingleton() {
		return []process{wholeProcess}
	}
	return []process{registrationProcess, workProcess}
}

// secret returns a secret of the agent; nil when it is absent.
func (s State) secret(name string) *Secret {
	if secret, ok := s.Secrets[s.agentNamespace()][name]; ok {
		return &secret
	}
	return nil
}

// cluster returns the name of the cluster: that of the spec, or the one that the agent has joined
// with; empty when it has not yet.
func (s State) cluster(asked settings.Asked) string {
	return cmp.Or(asked.Settings.ClusterName, string(s.HubSecret[clusterv1.SecretKeyClusterName]))
}

// install returns the Deployments of the agent, and the stages of its installation.
func (s State) install(asked settings.Asked) (wanted []*unstructured.Unstructured, stages []Stage, err error) {
	management := append(s.movedSecrets(asked), s.pullSecrets()...)
	for _, p := range s.processes() {
		cluster := s.cluster(asked)
		if p == workProcess && cluster == "" {
			continue
		}
		o := deploymentOptions{namespace: s.agentNamespace(), image: p.image(s.Klusterlet, s.Image), cluster: asked.Settings.ClusterName, replicas: 1}
		if p == workProcess {
			o.cluster, o.replicas = cluster, s.workReplicas()
		}
		if s.PullSource != nil {
			o.pullSecret = operatorv1.SecretImagePull
		}
		u, hash, err := deployment(p, s.Klusterlet, asked, o)
		if err != nil {
			return nil, nil, err
		}
		wanted = append(wanted, u)
		key := reconcile.KeyOf(u)
		if live, ok := s.Deployments[key]; !ok || live.Hash != hash || !s.Written[key] {
			management = append(management, reconcile.Apply{Object: u, Exact: true})
		}
	}
	return wanted, []Stage{
		{s.Parts.Writes(), operatorv1.ReasonCRDApplyFailed},
		{append([]reconcile.Write{s.namespace()}, s.Rights...), operatorv1.ReasonManagedClusterResourceApplyFailed},
		{management, operatorv1.ReasonManagementClusterResourceApplyFailed},
	}, nil
}

// namespace returns the apply of the agent's namespace.
func (s State) namespace() reconcile.Write {
	name := s.agentNamespace()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(name)
	u.SetLabels(map[string]string{operatorv1.LabelCreatedByKlusterlet: s.Klusterlet.Name, operatorv1.LabelKlusterlet: s.Klusterlet.Name})
	u.SetAnnotations(map[string]string{operatorv1.AnnotationWorkloadAllowed: "management"})
	return reconcile.Apply{Object: u, LiveVersion: s.Namespaces[name].Version}
}

// workReplicas is zero until there is something to connect with. Anything else that is wrong with
// the hub leaves works running, so that they can be cleaned up.
func (s State) workReplicas() int64 {
	if reason, _ := s.hubReason(); reason == operatorv1.ReasonHubKubeConfigSecretMissing {
		return 0
	}
	return 1
}

// movedSecrets returns the secrets of an agent that the spec moves to another namespace.
func (s State) movedSecrets(asked settings.Asked) []reconcile.Write {
	var out []reconcile.Write
	names := append(bootstrapSecrets(asked), operatorv1.SecretHubKubeconfig)
	for _, old := range s.oldNamespaces() {
		if s.secret(names[0]) != nil {
			break
		}
		for _, name := range names {
			if from, ok := s.Secrets[old][name]; ok && s.secret(name) == nil {
				out = append(out, reconcile.Create{Object: copyOf(from, s.agentNamespace(), name, s.Klusterlet.Name), Lenient: true})
			}
		}
	}
	return out
}

// oldNamespaces are those of the agent before its spec named another one.
func (s State) oldNamespaces() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(s.Namespaces)) {
		n := s.Namespaces[name]
		if n.Klusterlet == s.Klusterlet.Name && n.Owner == s.Klusterlet.Name && name != s.agentNamespace() && !n.Leaving {
			out = append(out, name)
		}
	}
	return out
}

// pullSecrets copies the image pull secret to where the agent and its add-ons run, and removes the
// copies when it is gone. A secret that somebody else made stays.
func (s State) pullSecrets() []reconcile.Write {
	var out []reconcile.Write
	targets := map[string]string{s.agentNamespace(): s.Klusterlet.Name}
	for name, n := range s.Namespaces {
		if (n.AddOns || name == operatorv1.NamespaceAgentAddOn) && !n.Leaving && name != s.agentNamespace() {
			targets[name] = s.Parts.Owner(s.PullCopies[name].Owner)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		live, found := s.PullCopies[name]
		switch {
		case s.PullSource != nil && name != s.PullSource.Namespace && (!found || live.Owner != ""):
			out = append(out, reconcile.Apply{Object: copyOf(*s.PullSource, name, operatorv1.SecretImagePull, targets[name]), LiveVersion: live.Version})
		case s.PullSource == nil && live.Owner != "":
			out = append(out, reconcile.Remove{Target: reconcile.Target{
				Resource: request.Secrets, Namespace: name, Name: operatorv1.SecretImagePull, UID: live.UID,
			}})
		}
	}
	return out
}

// copyOf returns a copy of a secret, labelled as a Klusterlet's.
func copyOf(from Secret, namespace, name, owner string) *unstructured.Unstructured {
	u := request.NewSecret(from.Data)
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(map[string]string{operatorv1.LabelCreatedByKlusterlet: owner})
	if from.Type != "" {
		u.Object["type"] = from.Type
	}
	return u
}

// leftovers removes what ran the agent before, and the namespaces it ran in.
func (s State) leftovers(wanted []*unstructured.Unstructured) []reconcile.Write {
	var out []reconcile.Write
	for _, key := range slices.SortedFunc(maps.Keys(s.Deployments), func(a, b reconcile.Key) int { return cmp.Compare(a.String(), b.String()) }) {
		if !slices.ContainsFunc(wanted, func(u *unstructured.Unstructured) bool { return reconcile.KeyOf(u) == key }) && s.isOurs(key.Name) {
			out = append(out, reconcile.Remove{Target: reconcile.Target{
				Resource: deploymentsResource, Namespace: key.Namespace, Name: key.Name, UID: s.Deployments[key].UID,
			}})
		}
	}
	for _, name := range s.oldNamespaces() {
		out = append(out, reconcile.Remove{Target: reconcile.Target{Resource: namespacesResource, Name: name, UID: s.Namespaces[name].UID}})
	}
	return out
}

// isOurs reports whether a Deployment of the Klusterlet has one of the names that the loop gives.
func (s State) isOurs(name string) bool {
	return slices.ContainsFunc(allProcesses, func(p process) bool { return name == s.Klusterlet.Name+p.suffix })
}

// removal is the plan for a Klusterlet that is being deleted.
func (s State) removal() Plan {
	if !slices.Contains(s.Klusterlet.Finalizers, operatorv1.FinalizerKlusterlet) {
		return Plan{}
	}
	p := Plan{Remove: true, Namespace: s.agentNamespace()}
	for _, d := range s.Deployments {
		if s.isOurs(d.Key.Name) {
			p.End = append(p.End, d)
		}
	}
	p.Await = len(p.End) > 0 && s.Now.Before(s.Klusterlet.DeletionTimestamp.Add(endPatience))
	next := s.Klusterlet.DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool {
		return f == operatorv1.FinalizerKlusterlet || f == operatorv1.FinalizerKlusterletHosted
	})
	p.Object = next
	return p
}

// failed returns the Klusterlet with Applied False.
func (s State) failed(reason, message string) *operatorv1.Klusterlet {
	next := s.Klusterlet.DeepCopy()
	s.setCondition(next, operatorv1.ConditionApplied, metav1.ConditionFalse, reason, message)
	return next
}
