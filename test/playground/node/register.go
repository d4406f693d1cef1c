// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// leaseEvery is kubelet's period; the node counts as lost after 50 s without a renewal.
const (
	leaseEvery    = 10 * time.Second
	leaseDuration = 40
	maxPods       = 110
)

// labels of the Node object.
func (m *manager) labels() map[string]string {
	return map[string]string{
		corev1.LabelHostname:   m.config.Name,
		corev1.LabelOSStable:   runtime.GOOS,
		corev1.LabelArchStable: runtime.GOARCH,
	}
}

// register creates the Node object and sets it to ready.
func (m *manager) register(ctx context.Context) error {
	object := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: m.config.Name, Labels: m.labels()},
		Spec:       corev1.NodeSpec{PodCIDR: podRange, PodCIDRs: []string{podRange}, ProviderID: "process://" + m.config.Name},
	}
	_, err := m.core.Nodes().Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering node %s: %w", m.config.Name, err)
	}
	patch, err := json.Marshal(map[string]any{"status": m.nodeStatus()})
	if err != nil {
		return fmt.Errorf("encoding node status: %w", err)
	}
	_, err = m.core.Nodes().Patch(ctx, m.config.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if err != nil {
		return fmt.Errorf("writing the status of node %s: %w", m.config.Name, err)
	}
	return m.renew(ctx)
}

func (m *manager) nodeStatus() corev1.NodeStatus {
	now := metav1.NewTime(m.config.Clock.Now())
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now}
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(machineMemory(), resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(maxPods, resource.DecimalSI),
	}
	return corev1.NodeStatus{
		Capacity:    capacity,
		Allocatable: capacity,
		Conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionTrue, "ProcessNodeReady", "pods of known images run as local processes"),
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "NotMeasured", "the process node does not measure memory"),
			condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "NotMeasured", "the process node does not measure disks"),
			condition(corev1.NodePIDPressure, corev1.ConditionFalse, "NotMeasured", "the process node does not count processes"),
		},
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: nodeAddress}, {Type: corev1.NodeHostName, Address: m.config.Name}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: kubeletPort}},
		NodeInfo: corev1.NodeSystemInfo{
			KubeletVersion: m.config.Version, ContainerRuntimeVersion: "process://1",
			OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH, OSImage: "process node",
		},
	}
}

// heartbeat renews the node's lease until ctx ends.
func (m *manager) heartbeat(ctx context.Context) error {
	ticker := m.config.Clock.NewTicker(leaseEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if err := m.renew(ctx); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Node lease was not renewed")
		}
	}
}

func (m *manager) renew(ctx context.Context) error {
	leases := m.coordination.Leases(corev1.NamespaceNodeLease)
	spec := coordinationv1.LeaseSpec{
		HolderIdentity:       &m.config.Name,
		LeaseDurationSeconds: ptr.To[int32](leaseDuration),
		RenewTime:            &metav1.MicroTime{Time: m.config.Clock.Now()},
	}
	patch, err := json.Marshal(map[string]any{"spec": spec})
	if err != nil {
		return fmt.Errorf("encoding node lease: %w", err)
	}
	_, err = leases.Patch(ctx, m.config.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(
			ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: m.config.Name}, Spec: spec},
			metav1.CreateOptions{FieldManager: fieldManager},
		)
	}
	if err != nil {
		return fmt.Errorf("renewing lease of node %s: %w", m.config.Name, err)
	}
	return nil
}

// bind binds pods without a node to this one; there is no other scheduler.
func (m *manager) bind(ctx context.Context) error {
	defer context.AfterFunc(ctx, m.unbound.ShutDown)()
	for {
		key, stop := m.unbound.Get()
		if stop {
			return nil
		}
		if err := m.bindOne(ctx, key); err != nil && ctx.Err() == nil {
			logr.FromContextOrDiscard(ctx).Error(err, "Pod was not bound", "pod", key.String())
			m.unbound.AddRateLimited(key)
		} else {
			m.unbound.Forget(key)
		}
		m.unbound.Done(key)
	}
}

func (m *manager) bindOne(ctx context.Context, key types.NamespacedName) error {
	pod, err := m.pods.Pods(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 || pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
		return nil
	}
	if label := missingLabel(pod.Spec.NodeSelector, m.labels()); label != "" {
		return m.refuse(ctx, pod, label)
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: m.config.Name},
	}
	err = m.core.Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // gone or bound: the cache will have it
	}
	if err != nil {
		return fmt.Errorf("binding pod %s: %w", key, err)
	}
	m.recorder.Eventf(pod, corev1.EventTypeNormal, "Scheduled", "Successfully assigned %s to %s", key, m.config.Name)
	return nil
}

// refuse records on a pod why it cannot be bound.
func (m *manager) refuse(ctx context.Context, pod *corev1.Pod, label string) error {
	condition := corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "the process node is the only node and has no label " + label, LastTransitionTime: metav1.NewTime(m.config.Clock.Now()),
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == condition.Type && c.Message == condition.Message {
			return nil
		}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   map[string]any{"conditions": []corev1.PodCondition{condition}},
	})
	if err != nil {
		return err
	}
	_, err = m.core.Pods(pod.Namespace).Patch(
		ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager},
		"status",
	)
	return err
}
