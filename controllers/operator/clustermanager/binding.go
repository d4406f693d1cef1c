// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// binding says where the process of a component listens.
type binding struct {
	// field is that of the spec, below spec.deployOption.default; empty for what is no webhook.
	field string
	// port is that of the webhook, health that of health and metrics, which are one server.
	port, health int32
	// host puts the pods into the networks of their nodes.
	host bool
}

// bindingOf returns where a component listens. In the network of a node the ports of health must
// differ from those of others, so that the one of the spec counts there; in a pod it does not
// matter, and stays what collectors of metrics know.
func bindingOf(c component, spec operatorv1.ClusterManagerSpec) binding {
	b := binding{port: webhook.Port, health: observe.Port}
	var given operatorv1.DefaultClusterManagerConfiguration
	if d := spec.DeployOption.Default; d != nil {
		given = *d
	}
	var asked operatorv1.BindConfiguration
	switch c.app {
	case hub.RegistrationService:
		b.field, asked = "registrationWebhookConfiguration", given.RegistrationWebhookConfiguration.BindConfiguration
	case hub.WorkService:
		b.field, asked = "workWebhookConfiguration", given.WorkWebhookConfiguration.BindConfiguration
	case hub.AddonService:
		b.field, asked = "addonWebhookConfiguration", given.AddonWebhookConfiguration.BindConfiguration
	}
	if asked.Port != nil {
		b.port = *asked.Port
	}
	b.host = asked.HostNetwork
	if b.host && asked.HealthProbePort != nil && *asked.HealthProbePort > 0 {
		b.health = *asked.HealthProbePort
	}
	return b
}

// check returns an error if no process can listen there.
func (b binding) check() error {
	const where = "spec.deployOption.default."
	switch {
	case b.port < 1 || b.port > 65535:
		return fmt.Errorf("%s%s.bindConfiguration.port=%d: choose a port from 1 to 65535", where, b.field, b.port)
	case b.health > 65535:
		return fmt.Errorf("%s%s.bindConfiguration.healthProbePort=%d: choose a port up to 65535", where, b.field, b.health)
	case b.port == b.health:
		return fmt.Errorf("%s%s.bindConfiguration.port=%d is that of health and metrics, too: choose another one", where, b.field, b.port)
	}
	return nil
}

// checkSplit returns an error if the components cannot run from the images of the spec, or a webhook
// cannot listen where it says.
func checkSplit(spec operatorv1.ClusterManagerSpec) error {
	if err := hub.CheckImages(spec); err != nil {
		return err
	}
	for _, c := range components {
		if err := bindingOf(c, spec).check(); err != nil {
			return err
		}
	}
	return nil
}

// args returns the flags for ports that are not as usual.
func (b binding) args() []string {
	var out []string
	if b.port != webhook.Port {
		out = append(out, "--port="+strconv.Itoa(int(b.port)))
	}
	if b.health != observe.Port {
		out = append(out, "--health-probe-port="+strconv.Itoa(int(b.health)))
	}
	return out
}

// setNetwork puts the pods of a Deployment into the networks of their nodes, if asked to. Two of them
// cannot be on one node, so that an old pod goes before its successor comes.
func (b binding) setNetwork(d *appsv1.Deployment, replicas int32) {
	if !b.host {
		return
	}
	d.Spec.Template.Spec.HostNetwork, d.Spec.Template.Spec.DNSPolicy = true, corev1.DNSClusterFirstWithHostNet
	surge, unavailable := intstr.FromInt32(0), intstr.FromInt32(1)
	if replicas >= 4 {
		unavailable = intstr.FromString("25%")
	}
	d.Spec.Strategy = appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
	}
}

// setTarget makes a Service lead to the port of a webhook. Its own port stays: the API server and the
// conversion of definitions know that one.
func (b binding) setTarget(service *unstructured.Unstructured) {
	ports, _, _ := unstructured.NestedSlice(service.Object, "spec", "ports")
	for _, p := range ports {
		p.(map[string]any)["targetPort"] = int64(b.port)
	}
	// What was read from there can be set there.
	_ = unstructured.SetNestedSlice(service.Object, ports, "spec", "ports")
}
