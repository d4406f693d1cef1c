// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// retryEvery is the delay until a pod is synced again after a failure.
const retryEvery = time.Second

// worker runs one pod, from its binding to its removal. One goroutine does everything;
// events elsewhere only wake it.
type worker struct {
	*manager
	key     types.NamespacedName
	uid     types.UID
	dir     string
	started time.Time
	wakes   chan struct{}
	tokens  *tokens

	init, main []*container
	address    string
	local      map[int32]int
	// reason and message tell why nothing can start; empty otherwise.
	reason, message string
	// written is the last status that was written, and version that of the pod with it.
	written *corev1.PodStatus
	version string
	// next is when to sync again without being woken; zero is never.
	next time.Time
}

func (m *manager) newWorker(pod *corev1.Pod) *worker {
	w := &worker{
		manager: m, key: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, uid: pod.UID,
		dir: filepath.Join(m.config.Dir, podsFolder, string(pod.UID)), started: m.config.Clock.Now(),
		wakes:  make(chan struct{}, 1),
		tokens: &tokens{core: m.core, clock: m.config.Clock, held: map[string]heldToken{}},
	}
	for i := range pod.Spec.InitContainers {
		w.init = append(w.init, w.newContainer(pod, &pod.Spec.InitContainers[i], pod.Status.InitContainerStatuses))
	}
	for i := range pod.Spec.Containers {
		w.main = append(w.main, w.newContainer(pod, &pod.Spec.Containers[i], pod.Status.ContainerStatuses))
	}
	if pod.Status.StartTime != nil {
		w.started = pod.Status.StartTime.Time
	}
	return w
}

// newContainer restores from the status what an earlier process node wrote.
func (w *worker) newContainer(pod *corev1.Pod, spec *corev1.Container, statuses []corev1.ContainerStatus) *container {
	c := &container{
		spec: spec, dir: filepath.Join(w.dir, "containers", spec.Name), clock: w.config.Clock, wake: w.wake,
		log: w.logFile(pod.Namespace, pod.Name, spec.Name), stopProbe: func() {},
		waiting: corev1.ContainerStateWaiting{Reason: "ContainerCreating"},
	}
	for _, old := range statuses {
		if old.Name != spec.Name {
			continue
		}
		c.restarts, c.last = old.RestartCount, old.LastTerminationState.Terminated
		if old.State.Terminated != nil {
			c.last = old.State.Terminated
		}
		if running := old.State.Running; running != nil {
			c.last = &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "Error", Message: "the process node was restarted", ContainerID: old.ContainerID,
				StartedAt: running.StartedAt, FinishedAt: metav1.NewTime(w.config.Clock.Now()),
			}
		}
	}
	return c
}

// wake makes the worker sync its pod.
func (w *worker) wake() {
	select {
	case w.wakes <- struct{}{}:
	default:
	}
}

// run syncs the pod until it is gone or ctx ends; then nothing of it is left.
func (w *worker) run(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx).WithValues("pod", w.key.String())
	defer func() {
		if err := w.clear(); err != nil {
			log.Error(err, "Pod was not removed from disk")
		}
	}()
	for {
		w.next = time.Time{}
		done, err := w.sync(ctx)
		if err != nil && ctx.Err() == nil {
			log.Error(err, "Pod is not as it should be")
			w.syncBy(w.config.Clock.Now().Add(retryEvery))
		}
		if done || !w.pause(ctx) {
			return
		}
	}
}

// pause waits until the pod needs a sync; it returns false when ctx has ended.
func (w *worker) pause(ctx context.Context) bool {
	var timer <-chan time.Time
	if !w.next.IsZero() {
		t := w.config.Clock.NewTimer(max(w.next.Sub(w.config.Clock.Now()), time.Millisecond))
		defer t.Stop()
		timer = t.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-w.wakes:
	case <-timer:
	}
	return true
}

// syncBy makes sure that the pod is synced at t or earlier.
func (w *worker) syncBy(t time.Time) {
	if !t.IsZero() && (w.next.IsZero() || t.Before(w.next)) {
		w.next = t
	}
}

// sync takes the pod one step towards its spec. done is true when the object is gone.
func (w *worker) sync(ctx context.Context) (done bool, err error) {
	pod, err := w.pods.Pods(w.key.Namespace).Get(w.key.Name)
	if apierrors.IsNotFound(err) || err == nil && pod.UID != w.uid {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	for _, c := range w.all() {
		if err := c.observe(); err != nil {
			return false, err
		}
		w.syncBy(c.killAt)
	}
	if pod.DeletionTimestamp != nil {
		return false, w.end(ctx, pod)
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false, nil
	}
	if err := w.advance(ctx, pod); err != nil {
		if !w.begun() {
			w.reason, w.message = "ContainerCreating", err.Error()
		}
		w.recorder.Event(pod, corev1.EventTypeWarning, "FailedMount", err.Error())
		w.syncBy(w.config.Clock.Now().Add(retryEvery))
	}
	return false, w.report(ctx, pod)
}

// begun reports whether any container was ever started: from then on, a volume that
// cannot be updated does not change the pod's status.
func (w *worker) begun() bool {
	return slices.ContainsFunc(w.all(), func(c *container) bool { return c.running != nil || c.last != nil })
}

// advance starts what should run and stops what is unhealthy.
func (w *worker) advance(ctx context.Context, pod *corev1.Pod) error {
	if w.reason, w.message = unsupported(&pod.Spec, w.config.Images); w.reason != "" {
		return nil
	}
	if err := w.prepare(ctx, pod); err != nil {
		return err
	}
	w.syncBy(w.tokens.nextRenewal())
	for _, c := range w.init {
		if !c.succeeded() {
			w.step(ctx, pod, c, initPolicy(pod.Spec.RestartPolicy))
			return nil
		}
	}
	for _, c := range w.main {
		w.step(ctx, pod, c, pod.Spec.RestartPolicy)
	}
	return nil
}

// initPolicy: an init container that succeeded is not started again.
func initPolicy(policy corev1.RestartPolicy) corev1.RestartPolicy {
	if policy == corev1.RestartPolicyAlways {
		return corev1.RestartPolicyOnFailure
	}
	return policy
}

// step starts a container that should run, or ends an unhealthy one.
func (w *worker) step(ctx context.Context, pod *corev1.Pod, c *container, policy corev1.RestartPolicy) {
	if c.running != nil {
		if why := c.known().unhealthy; why != "" && c.killAt.IsZero() {
			w.recorder.Eventf(pod, corev1.EventTypeWarning, "Unhealthy", "Container %s will be restarted: %s", c.spec.Name, why)
			w.terminate(ctx, c, grace(pod))
		}
		return
	}
	if !c.needsStart(policy) {
		return
	}
	if w.config.Clock.Now().Before(c.notBefore) {
		w.syncBy(c.notBefore)
		return
	}
	l, err := w.launch(pod, c)
	if err != nil {
		c.waiting = corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: err.Error()}
	} else if err = c.start(ctx, l); err != nil {
		c.waiting = corev1.ContainerStateWaiting{Reason: "RunContainerError", Message: err.Error()}
	}
	if err != nil {
		w.recorder.Event(pod, corev1.EventTypeWarning, "Failed", err.Error())
		w.syncBy(w.config.Clock.Now().Add(retryEvery))
		return
	}
	w.recorder.Eventf(pod, corev1.EventTypeNormal, "Started", "Container %s started as process %d", c.spec.Name, c.running.PID())
}

// terminate asks a container to end.
func (w *worker) terminate(ctx context.Context, c *container, grace time.Duration) {
	if err := c.terminate(grace); err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "Container was not asked to end", "container", c.spec.Name)
	}
	w.syncBy(c.killAt)
}

// grace returns how long a pod's processes may take to end.
func grace(pod *corev1.Pod) time.Duration {
	given := pod.Spec.TerminationGracePeriodSeconds
	if pod.DeletionGracePeriodSeconds != nil {
		given = pod.DeletionGracePeriodSeconds
	}
	return time.Duration(ptr.Deref(given, corev1.DefaultTerminationGracePeriodSeconds)) * time.Second
}

// end removes a deleted pod: first its processes, then its object.
func (w *worker) end(ctx context.Context, pod *corev1.Pod) error {
	running := false
	for _, c := range w.all() {
		if c.running == nil {
			continue
		}
		running = true
		if c.killAt.IsZero() {
			w.recorder.Eventf(pod, corev1.EventTypeNormal, "Killing", "Stopping container %s", c.spec.Name)
		}
		w.terminate(ctx, c, grace(pod))
	}
	if running {
		return nil
	}
	if err := w.report(ctx, pod); err != nil {
		return err
	}
	err := w.core.Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: &metav1.Preconditions{UID: &w.uid},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// report writes the pod's status if it changed.
func (w *worker) report(ctx context.Context, pod *corev1.Pod) error {
	status := w.status(pod)
	if w.written != nil && equality.Semantic.DeepEqual(*w.written, status) && !w.overruled(pod) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": w.uid}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of pod %s: %w", w.key, err)
	}
	stored, err := w.core.Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone, or another pod of that name: the next sync sees it
	}
	if err != nil {
		return fmt.Errorf("writing the status of pod %s: %w", w.key, err)
	}
	w.written, w.version = &status, stored.ResourceVersion
	return nil
}

// overruled reports whether others have changed a condition that this node writes: the controller
// manager says that no pod is ready on a node of which it heard nothing for a while.
func (w *worker) overruled(pod *corev1.Pod) bool {
	if order, err := resourceversion.CompareResourceVersion(pod.ResourceVersion, w.version); err != nil || order <= 0 {
		return false // the cache has not seen the last write yet
	}
	return slices.ContainsFunc(w.written.Conditions, func(own corev1.PodCondition) bool {
		return ours(own) && !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == own.Type && c.Status == own.Status
		})
	})
}

// ours reports whether a condition is one that this node writes.
func ours(c corev1.PodCondition) bool {
	switch c.Type {
	case corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady:
		return true
	}
	return false
}

// status computes what the pod's status should be.
func (w *worker) status(pod *corev1.Pod) corev1.PodStatus {
	f := facts{
		old: pod.Status, generation: pod.Generation, policy: pod.Spec.RestartPolicy, address: w.address,
		started: w.started, now: w.config.Clock.Now(), reason: w.reason, message: w.message, final: true,
	}
	if w.written != nil {
		f.old.Conditions = newer(pod.Status.Conditions, w.written.Conditions)
	}
	deleted := pod.DeletionTimestamp != nil
	for _, c := range w.init {
		f.init = append(f.init, w.containerStatus(c, !deleted && c.needsStart(initPolicy(f.policy))))
	}
	for _, c := range w.main {
		later := !deleted && c.needsStart(f.policy)
		f.final = f.final && !later && c.running == nil
		f.main = append(f.main, w.containerStatus(c, later))
	}
	return podStatus(f)
}

func (w *worker) containerStatus(c *container, later bool) corev1.ContainerStatus {
	if w.reason != "" && c.running == nil && c.last == nil {
		c.waiting = corev1.ContainerStateWaiting{Reason: w.reason, Message: w.message}
	}
	return c.status(later)
}

// newer replaces conditions from a cache, which may not have seen the last write yet,
// with those that this node wrote last; conditions of others stay.
func newer(cached, written []corev1.PodCondition) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, c := range written {
		if ours(c) {
			out = append(out, c)
		}
	}
	for _, c := range cached {
		if !ours(c) {
			out = append(out, c)
		}
	}
	return out
}

func (w *worker) all() []*container { return append(append([]*container{}, w.init...), w.main...) }

// clear kills the pod's processes and removes its folder and address.
func (w *worker) clear() error {
	var failed []error
	for _, c := range w.all() {
		if c.running != nil {
			failed = append(failed, c.running.Kill())
		}
		c.stopProbe()
	}
	if w.address != "" {
		w.network.release(w.address)
	}
	failed = append(failed, process.EndAll(w.dir), os.RemoveAll(w.dir))
	return errors.Join(failed...)
}
