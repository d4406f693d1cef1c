// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"fmt"
	"net"
	"slices"
	"strconv"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// place is where the API server reaches admission and conversion: at the Services in a namespace
// or, if the process runs on another cluster, at addresses.
type place struct {
	namespace string
	// addresses are host and port by the Service that they stand for.
	addresses map[string]string
}

// url returns the address of a path; nil where the Service itself is called.
func (p place) url(service, path string) *string {
	if p.addresses == nil {
		return nil
	}
	url := "https://" + p.addresses[service] + path
	return &url
}

// webhooksOf returns the addresses of the webhooks of a hub that runs on another cluster. Those of
// add-ons are served beside those of registration.
func webhooksOf(spec operatorv1.ClusterManagerSpec) map[string]operatorv1.HostedWebhookConfiguration {
	var given operatorv1.HostedClusterManagerConfiguration
	if h := spec.DeployOption.Hosted; h != nil {
		given = *h
	}
	return map[string]operatorv1.HostedWebhookConfiguration{
		operatorv1.ServiceRegistrationWebhook: given.RegistrationWebhookConfiguration,
		operatorv1.ServiceWorkWebhook:         given.WorkWebhookConfiguration,
		operatorv1.ServiceAddOnWebhook:        given.RegistrationWebhookConfiguration,
	}
}

// CheckAddresses returns an error if the hub could not reach the webhooks of a process on another
// cluster.
func CheckAddresses(spec operatorv1.ClusterManagerSpec) error {
	hooks := webhooksOf(spec)
	for field, service := range map[string]string{
		"registrationWebhookConfiguration": operatorv1.ServiceRegistrationWebhook, "workWebhookConfiguration": operatorv1.ServiceWorkWebhook,
	} {
		if hooks[service].Address == "" {
			return fmt.Errorf("spec.deployOption.hosted.%s.address is missing: the hub's API server calls the webhook there", field)
		}
		if port := hooks[service].Port; port < 0 {
			return fmt.Errorf("spec.deployOption.hosted.%s.port=%d: it must not be negative", field, port)
		}
	}
	return nil
}

// hostedPlace returns the addresses, and the hosts in them.
func hostedPlace(spec operatorv1.ClusterManagerSpec) (p place, hosts []string) {
	p.addresses = map[string]string{}
	for service, at := range webhooksOf(spec) {
		port := at.Port
		if port == 0 {
			port = defaultHostedPort
		}
		p.addresses[service] = net.JoinHostPort(at.Address, strconv.Itoa(int(port)))
		if at.Address != "" {
			hosts = append(hosts, at.Address)
		}
	}
	slices.Sort(hosts)
	return p, slices.Compact(hosts)
}

// defaultHostedPort is that of the API.
const defaultHostedPort = 443
