// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement/decisions"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// fleet is the view that placements are decided on: what the caches reported, plus what
// this process wrote itself.
type fleet struct {
	queue *reconcile.Queue
	// each calls its argument with every cluster of the cache.
	each func(func(*clusterv1.ManagedCluster)) error

	mu        sync.Mutex
	scheduler *schedule.Scheduler
	// started is false until everything that exists is known; nothing is decided before.
	started bool
	// known is what the scheduler knows of clusters.
	known needs
	// placements and objects are all placements and decisions; of holds the names of the
	// objects of a placement: those with its label and those with a name that it
	// generates.
	placements map[reconcile.Key]*clusterv1beta1.Placement
	objects    map[reconcile.Key]*clusterv1beta1.PlacementDecision
	of         map[reconcile.Key]map[string]struct{}
	// reported is the status last written to a placement.
	reported map[reconcile.Key]digest.Sum
	// writing holds the placements that are being written now, with the events of their
	// decisions that arrived meanwhile.
	writing map[reconcile.Key][]func()
	// own holds the decisions that this process has written, with the version it left:
	// older events of the cache are not news.
	own map[reconcile.Key]left
	// foreign holds the decisions that others have written since this process started,
	// and that it has neither written nor found correct since.
	foreign map[reconcile.Key]struct{}
}

// left is the result of a write of this process: an object's uid and version, or no
// version where it was deleted.
type left struct {
	uid     types.UID
	version string
}

func newFleet(queue *reconcile.Queue, each func(func(*clusterv1.ManagedCluster)) error) *fleet {
	return &fleet{
		queue: queue, each: each, scheduler: schedule.New(),
		placements: map[reconcile.Key]*clusterv1beta1.Placement{},
		objects:    map[reconcile.Key]*clusterv1beta1.PlacementDecision{},
		of:         map[reconcile.Key]map[string]struct{}{},
		reported:   map[reconcile.Key]digest.Sum{},
		writing:    map[reconcile.Key][]func(){},
		own:        map[reconcile.Key]left{},
		foreign:    map[reconcile.Key]struct{}{},
	}
}

// start passes the clusters to the scheduler and queues all placements.
func (f *fleet) start() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.started = true
	if err := f.refreshClusters(); err != nil {
		return err
	}
	f.scheduler.Take()
	for key := range f.placements {
		f.queue.Add(key)
	}
	return nil
}

// decide reads the state of one placement; false if there is none.
func (f *fleet) decide(key reconcile.Key, now time.Time) (State, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.placements[key]
	if p == nil || !f.started {
		return State{}, false
	}
	s := State{Placement: p.DeepCopy(), Now: now}
	if f.tampered(key) {
		s.Result = f.scheduler.DecideAnew(key, now)
	} else {
		s.Result = f.scheduler.Decide(key, now)
	}
	s.Scores = func() []schedule.Scored {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.scheduler.Scores(key, now)
	}
	s.Placement.SetGroupVersionKind(clusterv1beta1.GroupVersion.WithKind(kindPlacement))
	for _, name := range slices.Sorted(maps.Keys(f.of[key])) {
		s.Decisions = append(s.Decisions, f.objects[reconcile.Key{Namespace: key.Namespace, Name: name}])
	}
	return s, true
}

// tampered reports whether decisions of a placement are not as this process left them.
func (f *fleet) tampered(key reconcile.Key) bool {
	for name := range f.of[key] {
		if _, yes := f.foreign[reconcile.Key{Namespace: key.Namespace, Name: name}]; yes {
			return true
		}
	}
	return false
}

// recordUnchanged drops from foreign the decisions that a plan leaves as they are.
func (f *fleet) recordUnchanged(s State, p reconcile.Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range s.Decisions {
		if !slices.ContainsFunc(p.Writes, func(w reconcile.Write) bool { return reconcile.TargetOf(w).Name == d.Name }) {
			delete(f.foreign, reconcile.KeyOf(d))
		}
	}
}

// wake queues the placements that the last change affects.
func (f *fleet) wake(after time.Duration) {
	if !f.started {
		return
	}
	for _, key := range f.scheduler.Take() {
		if after > 0 {
			f.queue.AddAfter(key, after)
			continue
		}
		f.queue.Add(key)
	}
}

// recordWrite adds the result of a step of a plan to the view.
func (f *fleet) recordWrite(at reconcile.Target, live *unstructured.Unstructured) {
	key := reconcile.Key{Namespace: at.Namespace, Name: at.Name}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.foreign, key)
	if live == nil {
		if had := f.objects[key]; had != nil {
			f.own[key] = left{uid: had.UID}
		}
		f.storeDecision(key, nil)
	} else if d, err := typed.FromUnstructured[clusterv1beta1.PlacementDecision](live); err == nil {
		d.ManagedFields = nil // which the view does not need
		f.own[key] = left{uid: d.UID, version: d.ResourceVersion}
		f.storeDecision(key, d)
	}
	// A decision that is written is no reason to decide again. Take drops nothing else
	// here: every other change to the scheduler is followed by a Take of its own.
	f.scheduler.Take()
}

// recordFound adds an object to the view that was not known and has not been checked yet.
func (f *fleet) recordFound(at reconcile.Target, live *unstructured.Unstructured) {
	f.recordWrite(at, live)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.foreign[reconcile.Key{Namespace: at.Namespace, Name: at.Name}] = struct{}{}
}

// isNews reports whether an event of a decision is newer than this process's own write.
func (f *fleet) isNews(key reconcile.Key, old, current *clusterv1beta1.PlacementDecision) bool {
	l, ok := f.own[key]
	if !ok {
		return true
	}
	arrived, older := false, false
	switch deleted := l.version == ""; {
	case current == nil && deleted:
		arrived = old.UID == l.uid
	case current == nil:
		older = old.UID != l.uid // it went before this process made another
	case deleted:
		older = current.UID == l.uid
	default:
		arrived = current.ResourceVersion == l.version
		older = !arrived && !newer(current.ResourceVersion, l.version)
	}
	if older {
		return false
	}
	delete(f.own, key)
	return !arrived
}

// newer compares resourceVersions of one kind. They are growing numbers; any other
// version counts as newer.
func newer(a, b string) bool {
	x, err := strconv.ParseUint(a, 10, 64)
	y, also := strconv.ParseUint(b, 10, 64)
	return err != nil || also != nil || x > y
}

// storeDecision updates a decision in the view, or drops it, here and in the scheduler.
func (f *fleet) storeDecision(key reconcile.Key, current *clusterv1beta1.PlacementDecision) {
	for _, p := range f.ownersOf(key, f.objects[key]) {
		delete(f.of[p], key.Name)
		if len(f.of[p]) == 0 {
			delete(f.of, p)
		}
	}
	if current == nil {
		delete(f.objects, key)
		f.scheduler.DeleteDecision(key)
		return
	}
	for _, p := range f.ownersOf(key, current) {
		if f.of[p] == nil {
			f.of[p] = map[string]struct{}{}
		}
		f.of[p][key.Name] = struct{}{}
	}
	f.objects[key] = current
	f.scheduler.SetDecision(current)
}

// ownersOf returns the placements that a decision belongs to, by its name and by its
// label.
func (f *fleet) ownersOf(key reconcile.Key, d *clusterv1beta1.PlacementDecision) []reconcile.Key {
	var out []reconcile.Key
	if i := strings.LastIndex(key.Name, "-decision-"); i > 0 && decisions.Number(key.Name[:i], key.Name) > 0 {
		out = append(out, reconcile.Key{Namespace: key.Namespace, Name: key.Name[:i]})
	}
	if d == nil {
		return out
	}
	if label := d.Labels[clusterv1beta1.LabelPlacement]; label != "" && (len(out) == 0 || out[0].Name != label) {
		out = append(out, reconcile.Key{Namespace: key.Namespace, Name: label})
	}
	return out
}
