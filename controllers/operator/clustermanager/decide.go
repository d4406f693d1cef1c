// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Reasons that the API does not define, for waits that the operator of Open Cluster
// Management does not report.
const (
	reasonStarting    = "ControllersStarting"
	reasonSplitLayout = "SplitDeploymentsRunning"
	reasonHostedMode  = "HostedModeNotServed"
	reasonRemoving    = "ClusterManagerTerminating"
)

// retryRemoval is how often a removal checks what it cannot watch.
const retryRemoval = 2 * time.Second

// Definition is one CustomResourceDefinition, as found and as desired.
type Definition struct {
	// Name of the definition.
	Name string
	// Version is the resourceVersion found, empty when there is none.
	Version string
	// Established is true when the API is served.
	Established bool
	// Newer is the release that wrote the definition if it is newer than this one; the
	// definition is then left alone.
	Newer string
	// Wanted is the object to apply; nil when the definition is known to be up to date.
	Wanted *unstructured.Unstructured
}

// Hook is one webhook configuration, as found and as desired.
type Hook struct {
	// Name of the configuration.
	Name string
	// Version is the resourceVersion found, empty when there is none.
	Version string
	// Wanted is the object to apply; nil when the configuration is up to date.
	Wanted reconcile.Object
}

// State is the input of Decide.
type State struct {
	// ClusterManager is the object.
	ClusterManager *operatorv1.ClusterManager
	// Certs are the desired certificates, and CertsNext is when they have to be checked
	// again.
	Certs     certs.Set
	CertsNext time.Time
	// Stored is true when Certs are in their Secrets.
	Stored bool
	// Held tells by name which Secrets and ConfigMaps hold their part of Certs, and Versions
	// their resourceVersions.
	Held     map[string]bool
	Versions map[string]string
	// Hooks are the webhook configurations.
	Hooks []Hook
	// Definitions are the CustomResourceDefinitions of the hub, in the order to apply.
	Definitions []Definition
	// APIs are those that others may have installed, as found.
	APIs
	// Installed are the objects that the installer applied for the hub, and Deployment is the
	// generation of the Deployment that runs it, zero if none does. Pod are its pods; nil when
	// there is none.
	Installed  []operatorv1.RelatedResourceMeta
	Deployment int64
	Pod        *shared.Pod
	// Serving is nil when this process serves admission and conversion.
	Serving error
	// Unproven is why the API of managed clusters is not registered although its gate is on; nil when
	// it is, and while that is not known.
	Unproven error
	// Unready is what prevents Services from reaching this process; empty when they do, or
	// when no Deployment runs it.
	Unready string
	// Split are the running Deployments of a hub of another distribution.
	Split []string
	// Leftover is what the compact layout waits for until nothing is left of the split one.
	Leftover string
	// Components are the Deployments of the split layout; nil in the compact one.
	Components []Component
	// Faulty is why parts of the installation cannot be applied.
	Faulty error
	// Hosted is described at Config.
	Hosted bool
	// KeepAPIs is described at Config.
	KeepAPIs bool
	// Loops is what prevents the control loops from working; nil when they work.
	Loops error
	// Remaining is what a removal still waits for when the ClusterManager is being deleted;
	// Removed is true when nothing is left.
	Remaining string
	Removed   bool
	// Labels are set on the objects of clusters, as the flags of the process specify; with
	// SyncLabels the labels of the ClusterManager are added.
	Labels     map[string]string
	SyncLabels bool
	// Now is the time of the decision.
	Now time.Time
}

// Decision is a plan and the desired state of the control loops.
type Decision struct {
	reconcile.Plan
	// Run is true when the loops should run with Features.
	Run      bool
	Features Features
}

// Decide returns the next steps towards a working hub, as far as the state allows. It is a
// pure function.
func Decide(s State) Decision {
	cm := s.ClusterManager.DeepCopy()
	features, unknown, unsupported := parseFeatures(cm.Spec)
	features.complete(cm, s.APIs, s.Labels, s.SyncLabels)
	d := Decision{Plan: reconcile.Plan{Object: cm}, Features: features}
	if cm.DeletionTimestamp != nil {
		return remove(s, d)
	}
	if !slices.Contains(cm.Finalizers, operatorv1.FinalizerClusterManager) {
		cm.Finalizers = append(cm.Finalizers, operatorv1.FinalizerClusterManager)
	}
	cm.Status.ObservedGeneration = cm.Generation
	setInventory(s, cm, features)
	gatesCondition(s, unknown, unsupported)(cm)
	setProfilesCondition(s, cm, features.ClusterProfile)
	setPermissionsCondition(s, cm, features.ClusterPermission)
	setSupported(s, cm)
	if len(s.Split) > 0 {
		degrade(
			s, cm, reasonSplitLayout,
			fmt.Sprintf("A hub of another distribution runs here (%s); remove its Deployments to let this one take over", strings.Join(s.Split, ", ")),
		)
		return d
	}
	if problem := s.misplaced(); problem != "" {
		degrade(s, cm, reasonHostedMode, problem)
		// What runs goes on.
		d.Run = s.Loops == nil
		return d
	}
	if err := checkSplit(cm.Spec); err != nil && s.Components != nil {
		// The loop of the components says the same.
		s.Faulty = err
	}
	return build(s, d)
}

// misplaced returns why this process cannot run the hub; empty when it can.
func (s State) misplaced() string {
	spec := s.ClusterManager.Spec
	switch is := spec.DeployOption.Mode == operatorv1.InstallModeHosted; {
	case is && !s.Hosted:
		return "A hub in mode Hosted does not run on its own cluster: it needs a ClusterManager of another name than " + hub.Name +
			" on the cluster that it runs on"
	case s.Hosted && !is:
		return "The hub runs on another cluster, so that spec.deployOption.mode must be Hosted"
	case s.Hosted:
		if err := CheckAddresses(spec); err != nil {
			return err.Error()
		}
	}
	return ""
}

// build applies stage after stage; each stage waits for the one before.
func build(s State, d Decision) Decision {
	cm := d.Object.(*operatorv1.ClusterManager)
	if !s.CertsNext.IsZero() {
		d.RequeueAfter = max(s.CertsNext.Sub(s.Now), time.Second)
	}
	waiting := ""
	d.Writes = certificates(s, d.Features)
	reason := operatorv1.ReasonHubResourceApplyFailed
	if s.Stored {
		reason = operatorv1.ReasonCRDApplyFailed
		d.Writes = append(d.Writes, definitions(s)...)
		d.Writes = append(d.Writes, profiles(s, d.Features)...)
		d.Writes = append(d.Writes, accounts(s, d.Features)...)
		waiting = notEstablished(s)
	} else {
		waiting = "certificates to be stored"
	}
	switch {
	case waiting != "":
	case s.Serving != nil:
		waiting = "admission to be served: " + s.Serving.Error()
	case s.Unready != "":
		waiting = s.Unready
	default:
		reason = operatorv1.ReasonWebhookApplyFailed
		for _, h := range s.Hooks {
			if h.Wanted != nil {
				d.Writes = append(d.Writes, reconcile.Apply{Object: h.Wanted, LiveVersion: h.Version})
			}
			if h.Version == "" {
				waiting = "admission to be registered"
			}
		}
	}
	d.Writes = append(d.Writes, unused(s, d.Features)...)
	if s.Leftover != "" {
		waiting = cmp.Or(waiting, s.Leftover)
		d.RequeueAfter = retryRemoval
	}
	// Running loops keep running while something is repaired.
	d.Run = waiting == "" || s.Loops == nil && s.Leftover == ""
	d.OnFailure = &metav1.Condition{Type: operatorv1.ConditionApplied, Status: metav1.ConditionFalse, Reason: reason, Message: "The hub is not complete:"}
	setConditions(s, cm, waiting)
	return d
}

func definitions(s State) []reconcile.Write {
	var out []reconcile.Write
	for _, def := range s.Definitions {
		if def.Wanted != nil && def.Newer == "" {
			out = append(out, reconcile.Apply{Object: def.Wanted, LiveVersion: def.Version})
		}
	}
	return out
}

// notEstablished names the APIs that are not served yet.
func notEstablished(s State) string {
	var missing []string
	for _, def := range s.Definitions {
		if !def.Established {
			missing = append(missing, def.Name)
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "APIs to be established: " + strings.Join(missing, ", ")
}

// setFaulty says why parts of the installation cannot be applied.
func setFaulty(s State, cm *operatorv1.ClusterManager) {
	setCondition(cm, s.Now, metav1.Condition{
		Type: operatorv1.ConditionApplied, Status: metav1.ConditionFalse, Reason: reasonOf(s.Faulty),
		Message: "The hub is not complete: " + shared.Explain(s.Faulty),
	})
}

// setConditions sets the conditions of a hub that is not being deleted.
func setConditions(s State, cm *operatorv1.ClusterManager, waiting string) {
	if s.Faulty != nil {
		// Told also while something is waited for: it may be what keeps that away.
		setFaulty(s, cm)
	}
	if waiting != "" {
		setCondition(cm, s.Now, metav1.Condition{
			Type: operatorv1.ConditionProgressing, Status: metav1.ConditionTrue,
			Reason: operatorv1.ReasonClusterManagerDeploymentRolling, Message: "Waiting for " + waiting,
		})
		if s.Loops != nil || s.Components != nil {
			setDegraded(s, cm)
		}
		return
	}
	if s.Faulty != nil {
		setDegraded(s, cm)
		return
	}
	applied := metav1.Condition{
		Type:    operatorv1.ConditionApplied,
		Status:  metav1.ConditionTrue,
		Reason:  operatorv1.ReasonClusterManagerApplied,
		Message: "All parts of the hub are applied",
	}
	if newer := newerAPIs(s); newer != "" {
		applied.Message = "All parts of the hub are applied; left as they are: " + newer
	}
	if s.KeepAPIs {
		applied.Message += ". When the hub is removed, these stay: " + keptAPIs
	}
	setCondition(cm, s.Now, applied)
	progressing := metav1.Condition{
		Type: operatorv1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: operatorv1.ReasonClusterManagerUpToDate, Message: "The hub is up to date",
	}
	if rolling := rollingOut(s.Components); s.Loops != nil {
		progressing.Status, progressing.Reason, progressing.Message = metav1.ConditionTrue, reasonStarting, "Waiting for controllers: "+s.Loops.Error()
	} else if rolling != "" {
		progressing.Status, progressing.Reason = metav1.ConditionTrue, operatorv1.ReasonClusterManagerDeploymentRolling
		progressing.Message = "Waiting for Deployments: " + rolling
	}
	setCondition(cm, s.Now, progressing)
	setDegraded(s, cm)
}

// rollingOut names the Deployments whose pods are not those that they want.
func rollingOut(components []Component) string {
	var out []string
	for _, c := range components {
		if !c.Found || c.Rolling {
			out = append(out, c.Name)
		}
	}
	return strings.Join(out, ", ")
}

func newerAPIs(s State) string {
	var out []string
	for _, def := range s.Definitions {
		if def.Newer != "" {
			out = append(out, fmt.Sprintf("%s is of the newer release %s", def.Name, def.Newer))
		}
	}
	return strings.Join(out, ", ")
}

// setDegraded sets the Degraded conditions.
func setDegraded(s State, cm *operatorv1.ClusterManager) {
	if s.Loops != nil {
		degrade(s, cm, "", "Controllers do not run: "+s.Loops.Error())
		return
	}
	registration := metav1.Condition{
		Type: operatorv1.ConditionHubRegistrationDegraded, Status: metav1.ConditionFalse,
		Reason: operatorv1.ReasonRegistrationFunctional, Message: "Registration works",
	}
	for _, c := range []string{"registration-controller", "registration-webhook"} {
		explain(&registration, s.Components, c, operatorv1.ReasonGetRegistrationDeploymentFailed, operatorv1.ReasonUnavailableRegistrationPod)
	}
	setCondition(cm, s.Now, registration)
	placement := metav1.Condition{
		Type: operatorv1.ConditionHubPlacementDegraded, Status: metav1.ConditionFalse,
		Reason: operatorv1.ReasonPlacementFunctional, Message: "Placement works",
	}
	explain(&placement, s.Components, "placement-controller", operatorv1.ReasonGetPlacementDeploymentFailed, operatorv1.ReasonUnavailablePlacementPod)
	setCondition(cm, s.Now, placement)
}

// explain makes a condition True with one of the reasons if a component of the split layout
// does not exist, or lacks pods.
func explain(c *metav1.Condition, all []Component, name, missing, unavailable string) {
	i := slices.IndexFunc(all, func(c Component) bool { return c.Name == hub.Name+"-"+name })
	switch {
	case i < 0:
	case !all[i].Found:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, missing, "Deployment "+all[i].Name+" does not exist"
	case all[i].Unavailable:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, unavailable, "Deployment "+all[i].Name+" has fewer available pods than it wants"
	}
}

// degrade sets the Degraded conditions of registration and placement to True. With an empty
// reason, each gets the reason of an unavailable pod.
func degrade(s State, cm *operatorv1.ClusterManager, reason, message string) {
	registration, placement := reason, reason
	if reason == "" {
		registration, placement = operatorv1.ReasonUnavailableRegistrationPod, operatorv1.ReasonUnavailablePlacementPod
	}
	setCondition(cm, s.Now, metav1.Condition{
		Type: operatorv1.ConditionHubRegistrationDegraded, Status: metav1.ConditionTrue, Reason: registration, Message: message,
	})
	setCondition(cm, s.Now, metav1.Condition{
		Type: operatorv1.ConditionHubPlacementDegraded, Status: metav1.ConditionTrue, Reason: placement, Message: message,
	})
}

// gatesCondition returns a function that sets the condition about feature gates that are
// unknown or not supported.
func gatesCondition(s State, unknown, unsupported []string) func(*operatorv1.ClusterManager) {
	c := metav1.Condition{
		Type: operatorv1.ConditionValidFeatureGates, Status: metav1.ConditionTrue,
		Reason: operatorv1.ReasonFeatureGatesAllValid, Message: "Feature gates are all valid",
	}
	if len(unknown)+len(unsupported) > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, operatorv1.ReasonInvalidFeatureGatesExisting
		c.Message = "There are some invalid feature gates:"
		if len(unknown) > 0 {
			c.Message += fmt.Sprintf(" unknown: %s;", strings.Join(unknown, ", "))
		}
		if len(unsupported) > 0 {
			c.Message += fmt.Sprintf(" not supported yet: %s;", strings.Join(unsupported, ", "))
		}
		c.Message += " all others are in effect"
	}
	return func(cm *operatorv1.ClusterManager) { setCondition(cm, s.Now, c) }
}

// remove waits until nothing is left, then removes the finalizer of the ClusterManager.
func remove(s State, d Decision) Decision {
	cm := d.Object.(*operatorv1.ClusterManager)
	c := metav1.Condition{Type: operatorv1.ConditionProgressing, Status: metav1.ConditionTrue, Reason: reasonRemoving, Message: "Waiting for " + s.Remaining}
	have := apimeta.FindStatusCondition(cm.Status.Conditions, c.Type)
	if have == nil || have.Reason != reasonRemoving {
		d.Events = append(d.Events, reconcile.Event{
			Type:      corev1.EventTypeNormal,
			Reason:    "Removing",
			Message:   removing(s),
			Namespace: operatorv1.NamespaceOperator,
		})
	}
	if s.Removed {
		cm.Finalizers = slices.DeleteFunc(cm.Finalizers, func(f string) bool { return f == operatorv1.FinalizerClusterManager })
		return d
	}
	d.RequeueAfter = retryRemoval
	setCondition(cm, s.Now, c)
	return d
}

// keptAPIs names what a removal keeps, and the argument that says so.
const keptAPIs = "the APIs, clusters, works and all else of users (--skip-remove-crds)"

// removing says what is removed.
func removing(s State) string {
	if s.KeepAPIs {
		return "The hub is being removed with the rights of its agents. What stays, for a later hub to take over: " + keptAPIs
	}
	return "The hub is being removed"
}

// setCondition sets c unless the same status, reason and message are already set.
func setCondition(cm *operatorv1.ClusterManager, now time.Time, c metav1.Condition) {
	have := apimeta.FindStatusCondition(cm.Status.Conditions, c.Type)
	if have != nil && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
		return
	}
	c.ObservedGeneration = cm.Generation
	reconcile.SetCondition(&cm.Status.Conditions, c, now)
}
