// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/access"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/image"
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
	// Neighbors are the other Klusterlets of this cluster that stay.
	Neighbors []string
	// HubNamespaceOf is the managed cluster whose namespace, on a hub that is this cluster, a hosted
	// agent would take that has not run yet; empty if it would take none.
	HubNamespaceOf string
	// Managed is the managed cluster of a hosted agent; the Parts are then those of that cluster.
	Managed Managed
	// Compact makes one process of every agent.
	Compact bool
	// SyncLabels copies the labels of the Klusterlet to what is made for its agent alone.
	SyncLabels bool
	// Image is the image of this program.
	Image string
	// Rights are the applies of the agent's ServiceAccounts and rights.
	Rights []reconcile.Write
	// Former are the removals of rights that the agent has no longer.
	Former []reconcile.Write
	// Deployments are those with the label of the Klusterlet; Written says which of them are as
	// this loop left them.
	Deployments map[reconcile.Key]Deployment
	Written     map[reconcile.Key]bool
	// Namespaces are those that concern the Klusterlet, by name; Secrets are the kubeconfigs in
	// them, by namespace and name.
	Namespaces map[string]Labelled
	Secrets    map[string]map[string]Secret
	// PullSource is the image pull secret beside this process, nil without one; PullCopies are
	// those of other namespaces.
	PullSource *Secret
	PullCopies map[string]Secret
	// Profile limits the connections of all agents of an operator, nil without one; ProfileCopies
	// are those of other namespaces.
	Profile       *Profile
	ProfileCopies map[string]Profile
	// Policies are the NetworkPolicies in the agent's namespace that have the names of an agent's and the
	// label of one; APIServer are the ports of the API servers of this cluster.
	Policies  map[string]Labelled
	APIServer []int64
	// BootstrapSecret and HubSecret are the data of the agent's secrets, nil when absent;
	// Bootstrap and Hub are what the hub grants to them.
	BootstrapSecret, HubSecret map[string][]byte
	Bootstrap, Hub             access.Answer
}

// Stage is a part of a plan; Reason is that of Applied False when it fails.
type Stage struct {
	Writes []reconcile.Write
	Reason string
	// Managed is true when the writes are for the managed cluster of a hosted agent.
	Managed bool
	// tokens are to be requested there.
	tokens []token
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
	// Managed is true when the managed cluster of a hosted agent is to be cleaned up, Left when
	// it is left as it is. The rest stays for the next pass then.
	Managed, Left bool
}

// Decide returns what to write for a Klusterlet that this loop serves. It is a pure function.
func Decide(s State) Plan {
	p := s.decide()
	if len(p.Writes) > 0 {
		p.OnFailure = &metav1.Condition{
			Type: operatorv1.ConditionApplied, Status: metav1.ConditionFalse, Reason: operatorv1.ReasonManagementClusterResourceApplyFailed,
			ObservedGeneration: s.Klusterlet.Generation,
		}
	}
	return p
}

func (s State) decide() Plan {
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
	asked.Invalid = cmp.Or(asked.Invalid, s.misplaced(), s.foreign())
	limits, problem := s.limits()
	asked.Invalid = cmp.Or(asked.Invalid, problem)
	addUnsupported(&asked, s.Klusterlet.Spec)
	s.Properties = asked.Settings.Properties
	p := Plan{}
	next.Status.ObservedGeneration = next.Generation
	var wanted []*unstructured.Unstructured
	problem = asked.Invalid
	if s.isHosted() && problem == "" {
		if problem = s.Managed.Problem; s.prepare(next, &p) {
			return p
		}
	}
	if problem == "" {
		wanted, problem = s.install(asked, s.policies(asked), limits, &p)
		s.addLabels(p.Stages)
	}
	s.setConditions(next, asked, problem)
	if !s.isHosted() || asked.Invalid == "" {
		p.RequeueAfter = sooner(p.RequeueAfter, s.setConnection(next, asked))
	}
	if problem == "" {
		s.setInventory(next, wanted, asked.Policies)
		if s.isAvailable(wanted) {
			s.leftovers(wanted, &p)
		}
	}
	p.Object = next
	return p
}

// sooner returns the shorter of two times that are not zero.
func sooner(a, b time.Duration) time.Duration {
	return reconcile.Result{RequeueAfter: a}.Sooner(reconcile.Result{RequeueAfter: b}).RequeueAfter
}

// foreign returns why an image of the spec does not run the agent; empty when all do.
func (s State) foreign() string {
	for _, p := range s.processes() {
		if err := image.Check(p.imageField(s.Klusterlet)); err != nil {
			return err.Error()
		}
	}
	return ""
}

// misplaced returns why the agent cannot run where the spec says; empty when it can.
func (s State) misplaced() string {
	switch mode := s.Klusterlet.Spec.DeployOption.Mode; {
	case mode != "" && mode != operatorv1.InstallModeDefault && mode != operatorv1.InstallModeSingleton && !mode.IsHosted():
		return "deployOption.mode " + string(mode) + " does not exist: use Default, Singleton, Hosted or SingletonHosted"
	case s.isHosted() && (!s.Klusterlet.IsHosted() || len(s.oldNamespaces()) > 0):
		return "deployOption.mode cannot change between the modes that run the agent on the managed cluster and the hosted ones: " +
			"delete the Klusterlet and create it again"
	case s.isHosted() && !operatorv1.CanBeHosted(s.Klusterlet.Name):
		return "a hosted agent runs in the namespace with the name of its Klusterlet, which cannot be " + s.Klusterlet.Name + ": choose another name"
	case s.HubNamespaceOf != "":
		return "namespace " + s.Klusterlet.Name + " is that of managed cluster " + s.HubNamespaceOf + ", whose hub is this cluster: " +
			"delete the Klusterlet and create it with another name"
	case s.isHosted() && s.managedHolder() != "":
		return "namespace " + s.Klusterlet.ManagedNamespace() + " of the managed cluster is that of klusterlet/" + s.managedHolder() +
			": set spec.namespace to another one"
	case s.Klusterlet.ManagedNamespace() == operatorv1.NamespaceAgentAddOn:
		return "namespace " + operatorv1.NamespaceAgentAddOn + " is that of add-ons: set spec.namespace to another one"
	case s.Holder != "":
		return "namespace " + s.agentNamespace() + " is that of klusterlet/" + s.Holder + ": set spec.namespace to another one"
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

// isHosted reports whether the agent runs here and manages another cluster, or has done so before
// its spec was changed.
func (s State) isHosted() bool {
	return s.Klusterlet.IsHosted() || slices.Contains(s.Klusterlet.Finalizers, operatorv1.FinalizerKlusterletHosted)
}

// isSingleton reports whether one process is the whole agent.
func (s State) isSingleton() bool {
	mode := s.Klusterlet.Spec.DeployOption.Mode
	return s.Compact || mode == operatorv1.InstallModeSingleton || mode == operatorv1.InstallModeSingletonHosted
}

// agentNamespace is where the agent runs.
func (s State) agentNamespace() string {
	if s.isHosted() {
		return s.Klusterlet.Name
	}
	return s.Klusterlet.AgentNamespace()
}

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

// install adds the stages of the installation to the plan. It returns the Deployments of the agent,
// and what is missing for it; empty when nothing is.
func (s State) install(asked settings.Asked, policies []reconcile.Write, limits []string, p *Plan) (wanted []*unstructured.Unstructured, missing string) {
	management := slices.Concat(s.movedSecrets(asked), s.pullSecrets(), s.profiles(), policies)
	for _, one := range s.processes() {
		switch {
		case one == workProcess && s.cluster(asked) == "":
			missing = "works are applied once the cluster has a name: the spec has none, and Secret hub-kubeconfig-secret neither"
			continue
		case s.isHosted() && s.secret(one.spokeSecret()) == nil:
			missing = "Secret " + one.spokeSecret() + " is missing: the token of the agent on the managed cluster is requested"
			continue
		}
		o := s.optionsOf(one, asked)
		o.limits, o.labels = limits, s.labels()
		u, hash, err := deployment(one, s.Klusterlet, asked, o)
		if err != nil {
			return nil, err.Error()
		}
		wanted = append(wanted, u)
		key := reconcile.KeyOf(u)
		if live, ok := s.Deployments[key]; !ok || live.Hash != hash || !s.Written[key] {
			management = append(management, reconcile.Apply{Object: u, Exact: true})
		}
	}
	if !s.isHosted() {
		p.Stages = []Stage{
			{Writes: s.Parts.Writes(), Reason: operatorv1.ReasonCRDApplyFailed},
			{Writes: append([]reconcile.Write{s.namespace()}, s.Rights...), Reason: operatorv1.ReasonManagedClusterResourceApplyFailed},
			{Writes: management, Reason: operatorv1.ReasonManagementClusterResourceApplyFailed},
		}
		return wanted, missing
	}
	s.installHosted(p, management)
	return wanted, missing
}

// optionsOf returns what the Deployment of a process depends on besides the Klusterlet.
func (s State) optionsOf(p process, asked settings.Asked) deploymentOptions {
	o := deploymentOptions{namespace: s.agentNamespace(), image: p.image(s.Klusterlet, s.Image), cluster: asked.Settings.ClusterName, replicas: 1}
	if p == workProcess {
		o.cluster, o.replicas = s.cluster(asked), s.workReplicas()
	}
	if s.PullSource != nil {
		o.pullSecret = operatorv1.SecretImagePull
	}
	if s.isHosted() {
		o.managed = s.Klusterlet.ManagedNamespace()
	}
	return o
}

// labels are those of the Klusterlet that its agent's objects get, too.
func (s State) labels() map[string]string {
	out := map[string]string{}
	if s.SyncLabels {
		maps.Copy(out, s.Klusterlet.Labels)
		maps.DeleteFunc(out, func(key, _ string) bool { return key == "app" || strings.HasPrefix(key, "open-cluster-management.io") })
	}
	return out
}

// addLabels adds these to everything but what several agents share: the first stage, and copies.
func (s State) addLabels(stages []Stage) {
	for _, stage := range stages[min(1, len(stages)):] {
		for _, a := range reconcile.Of[reconcile.Apply](stage.Writes) {
			if kind := a.Object.GetObjectKind().GroupVersionKind().Kind; kind != "Secret" && kind != "ConfigMap" {
				labels := s.labels()
				maps.Copy(labels, a.Object.GetLabels())
				a.Object.SetLabels(labels)
			}
		}
	}
}

// namespace returns the apply of the agent's namespace.
func (s State) namespace() reconcile.Write {
	name := s.agentNamespace()
	return reconcile.Apply{Object: s.namespaceNamed(name), LiveVersion: s.Namespaces[name].Version}
}

func (s State) namespaceNamed(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(name)
	u.SetLabels(map[string]string{operatorv1.LabelCreatedByKlusterlet: s.Klusterlet.Name, operatorv1.LabelKlusterlet: s.Klusterlet.Name})
	u.SetAnnotations(map[string]string{operatorv1.AnnotationWorkloadAllowed: "management"})
	return u
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
func (s State) oldNamespaces() []string { return s.others(s.Namespaces, s.agentNamespace()) }

// others returns the namespaces that were made for the agent, without the one that it has now.
func (s State) others(all map[string]Labelled, now string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		n := all[name]
		if n.Klusterlet == s.Klusterlet.Name && n.Owner == s.Klusterlet.Name && name != now && !n.Leaving {
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
			if targets[name] = s.PullCopies[name].Owner; !slices.Contains(s.Neighbors, targets[name]) {
				targets[name] = s.Klusterlet.Name
			}
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

// lastCopies removes what the last Klusterlet of the cluster has copied to namespaces of others.
func (s State) lastCopies() []reconcile.Write {
	if len(s.Neighbors) > 0 {
		return nil
	}
	s.PullSource, s.Profile = nil, nil
	return append(s.pullSecrets(), s.profiles()...)
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
func (s State) leftovers(wanted []*unstructured.Unstructured, p *Plan) {
	for _, key := range slices.SortedFunc(maps.Keys(s.Deployments), func(a, b reconcile.Key) int { return cmp.Compare(a.String(), b.String()) }) {
		if !slices.ContainsFunc(wanted, func(u *unstructured.Unstructured) bool { return reconcile.KeyOf(u) == key }) && s.isOurs(key.Name) {
			p.Writes = append(p.Writes, reconcile.Remove{Target: reconcile.Target{
				Resource: deploymentsResource, Namespace: key.Namespace, Name: key.Name, UID: s.Deployments[key].UID,
			}})
		}
	}
	p.Writes = append(p.Writes, s.Former...)
	if !s.isHosted() {
		p.Writes = append(p.Writes, removeNamespaces(s.Namespaces, s.oldNamespaces())...)
		return
	}
	old := removeNamespaces(s.Managed.Namespaces, s.others(s.Managed.Namespaces, s.Klusterlet.ManagedNamespace()))
	if len(old) > 0 {
		p.Stages = append(p.Stages, Stage{Writes: old, Managed: true, Reason: operatorv1.ReasonManagedClusterResourceApplyFailed})
	}
}

func removeNamespaces(all map[string]Labelled, names []string) []reconcile.Write {
	var out []reconcile.Write
	for _, name := range names {
		out = append(out, reconcile.Remove{Target: reconcile.Target{Resource: namespacesResource, Name: name, UID: all[name].UID}})
	}
	return out
}

// isOurs reports whether a Deployment of the Klusterlet has one of the names that the loop gives.
func (s State) isOurs(name string) bool {
	return slices.ContainsFunc(allProcesses, func(p process) bool { return name == s.Klusterlet.Name+p.suffix })
}

// removal is the plan for a Klusterlet that is being deleted. The managed cluster of a hosted agent
// is cleaned up first, while the Secret that leads there exists.
func (s State) removal() Plan {
	next := s.Klusterlet.DeepCopy()
	finalizer := operatorv1.FinalizerKlusterlet
	p := Plan{Remove: true, Namespace: s.agentNamespace()}
	switch {
	case slices.Contains(next.Finalizers, operatorv1.FinalizerKlusterletHosted):
		finalizer = operatorv1.FinalizerKlusterletHosted
		p.Managed = s.Managed.Problem == ""
		if p.Left = !p.Managed && s.isGivenUp(); p.Left {
			p.Events = []reconcile.Event{s.leftEvent()}
		} else if !p.Managed {
			return s.awaitManaged(next)
		}
	case !slices.Contains(next.Finalizers, finalizer):
		return Plan{}
	default:
		p.Writes = append(s.policies(settings.Asked{}), s.lastCopies()...)
	}
	for _, d := range s.Deployments {
		if s.isOurs(d.Key.Name) {
			p.End = append(p.End, d)
			p.Await = p.Await || d.Leaving.IsZero() || s.Now.Before(d.Leaving.Add(endPatience))
		}
	}
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == finalizer })
	p.Object = next
	return p
}

// failed returns the Klusterlet with Applied False.
func (s State) failed(reason, message string) *operatorv1.Klusterlet {
	next := s.Klusterlet.DeepCopy()
	s.setCondition(next, operatorv1.ConditionApplied, metav1.ConditionFalse, reason, message)
	return next
}
