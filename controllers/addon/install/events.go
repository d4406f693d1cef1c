// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Reasons of events on a ClusterManagementAddOn.
const (
	eventInstalled = "Installed"
	eventRemoved   = "Removed"
	eventFailed    = "InstallFailed"
)

// maxNames is the most clusters that an event names.
const maxNames = 5

// news records writes of instances that no event has reported yet, so that there is one event
// for a whole pass, and none for a pass that is repeated before the index shows the writes of
// the previous one. Its methods are safe for concurrent use.
type news struct {
	mu sync.Mutex
	of map[string]*tally
}

// tally holds the writes for one add-on, by cluster. made and gone are the instances that the
// current pass created or deleted; toldMade and toldGone are those that an event reported but
// the index does not reflect yet.
type tally struct {
	made, gone         map[string]types.UID
	toldMade, toldGone map[string]types.UID
	// failure is the last failure reported.
	failure string
}

func newNews() *news { return &news{of: map[string]*tally{}} }

func (n *news) get(addOn string) *tally {
	one := n.of[addOn]
	if one == nil {
		one = &tally{made: map[string]types.UID{}, gone: map[string]types.UID{}, toldMade: map[string]types.UID{}, toldGone: map[string]types.UID{}}
		n.of[addOn] = one
	}
	return one
}

// recordWrite records an instance that was applied, or deleted if live is nil.
func (n *news) recordWrite(at reconcile.Target, live *unstructured.Unstructured) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.get(at.Name)
	if live == nil {
		one.gone[at.Namespace] = at.UID
	} else {
		one.made[at.Namespace] = live.GetUID()
	}
}

// dropSeen drops the reported writes that the index reflects by now.
func (n *news) dropSeen(addOn string, instances []instance.AddOn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.of[addOn]
	if one == nil {
		return
	}
	there := map[string]types.UID{}
	for _, a := range instances {
		delete(one.toldMade, a.Cluster)
		if !a.Deleting {
			there[a.Cluster] = a.UID
		}
	}
	for cluster, uid := range one.toldGone {
		if there[cluster] != uid {
			delete(one.toldGone, cluster)
		}
	}
}

// forget drops the records of a deleted add-on.
func (n *news) forget(addOn string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.of, addOn)
}

// events returns the events about the result of a plan, including a failure.
func (n *news) events(addOn string, plan reconcile.Plan, failure error) (out []reconcile.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.of[addOn]
	if one == nil {
		if failure == nil {
			return nil
		}
		one = n.get(addOn)
	}
	var made, gone []string
	for _, a := range reconcile.Of[reconcile.Apply](plan.Writes) {
		cluster := a.Object.GetNamespace()
		uid, wrote := one.made[cluster]
		if a.Object.GetUID() == "" && wrote && one.toldMade[cluster] != uid {
			made, one.toldMade[cluster] = append(made, cluster), uid
		}
	}
	for cluster, uid := range one.gone {
		if one.toldGone[cluster] != uid {
			gone, one.toldGone[cluster] = append(gone, cluster), uid
		}
	}
	clear(one.made)
	clear(one.gone)
	slices.Sort(gone)
	if len(made) > 0 {
		out = append(out, reconcile.Event{Type: corev1.EventTypeNormal, Reason: eventInstalled, Message: "Installed on " + counted(made)})
	}
	if len(gone) > 0 {
		out = append(out, reconcile.Event{Type: corev1.EventTypeNormal, Reason: eventRemoved, Message: "Removed from " + counted(gone)})
	}
	text := ""
	if failure != nil {
		text = strings.ReplaceAll(failure.Error(), "\n", "; ")
	}
	if text != "" && text != one.failure {
		out = append(out, reconcile.Event{Type: corev1.EventTypeWarning, Reason: eventFailed, Message: text})
	}
	one.failure = text
	return out
}

// counted describes how many clusters there are, with the first names.
func counted(names []string) string {
	switch n := len(names); {
	case n == 1:
		return "1 cluster: " + names[0]
	case n > maxNames:
		return fmt.Sprintf("%d clusters: %s and %d more", n, strings.Join(names[:maxNames], ", "), n-maxNames)
	default:
		return fmt.Sprintf("%d clusters: %s", n, strings.Join(names, ", "))
	}
}
