// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	confighub "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// phaseProvisioned is the phase of a Cluster whose API server answers.
const phaseProvisioned = "Provisioned"

// bootstrapUser and bootstrapTokens are who registers with a bootstrap token: the account, and
// the prefix that Kubernetes reserves for the users of its own bootstrap tokens.
const (
	bootstrapUser   = "system:serviceaccount:" + confighub.Namespace + ":" + confighub.BootstrapServiceAccount
	bootstrapTokens = "system:bootstrap:"
)

// maxMessage limits what a failure may say, in bytes.
const maxMessage = 512

// sight is how the hub sees the Clusters.
type sight int

const (
	// unread means that they were not read yet: nothing may be said of them.
	unread sight = iota
	// denied means that the hub may not read them.
	denied
	// read means that they are known.
	read
)

// State holds everything a decision needs.
type State struct {
	// Cluster is the ManagedCluster; Decide does not change it.
	Cluster *clusterv1.ManagedCluster
	// Phase is that of its Cluster; Found is false where there is none.
	Phase string
	Found bool
	// sight is how the hub sees the Clusters.
	sight sight
	// Renderers build the settings of the agent, in this order; empty means both, without a
	// Secret being required.
	Renderers []string
	// Failed is how the import failed, if it was due; nil if it succeeded.
	Failed *failure
	// Now is the time of the decision.
	Now time.Time
}

// failure is a reason of the condition and its message.
type failure struct{ reason, message string }

// fail words a failure. The text of an error may come from the cluster that is imported.
func fail(reason, doing string, err error) *failure {
	return &failure{reason, excerpt.Within(doing+": "+err.Error(), maxMessage)}
}

// clusterOf returns the Cluster of a ManagedCluster.
func clusterOf(mc *clusterv1.ManagedCluster) reconcile.Key {
	if namespace, name, ok := strings.Cut(mc.Annotations[clusterv1.AnnotationCAPICluster], "/"); ok {
		return reconcile.Key{Namespace: namespace, Name: name}
	}
	return reconcile.Key{Namespace: mc.Name, Name: mc.Name}
}

// isSettled reports whether a cluster is never imported: it was, it has joined, it leaves, or
// it registers itself.
func isSettled(mc *clusterv1.ManagedCluster) bool {
	creator := mc.Annotations[clusterv1.AnnotationCreator]
	itself := creator == bootstrapUser || strings.HasPrefix(creator, bootstrapTokens)
	return mc.DeletionTimestamp != nil || hub.StatusOf(mc, clusterv1.ConditionImportSucceeded) == metav1.ConditionTrue ||
		apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionJoined) != nil || itself && !mc.Spec.HubAcceptsClient
}

// reasonOf returns the reason of the condition that this loop sets; empty without it.
func reasonOf(mc *clusterv1.ManagedCluster) string {
	if c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionImportSucceeded); c != nil {
		return c.Reason
	}
	return ""
}

// isDue reports whether the cluster can be imported now.
func (s State) isDue() bool { return !isSettled(s.Cluster) && s.Found && s.Phase == phaseProvisioned }

// Decide is pure.
func Decide(s State) reconcile.Plan {
	c := metav1.Condition{Type: clusterv1.ConditionImportSucceeded, Status: metav1.ConditionFalse}
	key, plan := clusterOf(s.Cluster), reconcile.Plan{}
	switch {
	case isSettled(s.Cluster):
		return plan
	case s.isDue() && s.Failed == nil:
		c.Status, c.Reason = metav1.ConditionTrue, clusterv1.ReasonImportSucceed
		c.Message = fmt.Sprintf("The agent is installed on Cluster %s", key)
	case s.isDue():
		c.Reason, c.Message = s.Failed.reason, s.Failed.message
		plan.RequeueAfter = retry
	case s.Found:
		c.Reason = clusterv1.ReasonKubeConfigNotFound
		c.Message = fmt.Sprintf("Waiting for Cluster %s to be %s; its phase is %q", key, phaseProvisioned, excerpt.Within(s.Phase, maxMessage/4))
	case s.Cluster.Annotations[clusterv1.AnnotationCAPICluster] == "":
		return plan // most clusters are none of Cluster API
	case s.sight == unread:
		return plan
	case s.sight == denied:
		c.Reason = clusterv1.ReasonKubeConfigGetFailed
		c.Message = "The hub may not read Clusters of Cluster API. An administrator allows it with: " + confighub.AllowImporter
	default:
		c.Reason = clusterv1.ReasonKubeConfigNotFound
		c.Message = fmt.Sprintf("There is no Cluster %s, which the annotation %s names", key, clusterv1.AnnotationCAPICluster)
	}
	mc := s.Cluster.DeepCopy()
	hub.SetCondition(mc, s.Now, c)
	plan.Object = mc
	return plan
}
