// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// Where the pods of an agent find their secrets.
const (
	bootstrapPath = "/spoke/bootstrap"
	hubPath       = "/spoke/hub-kubeconfig"
	spokePath     = "/spoke/config"
)

// Requests a second and their burst, unless the spec says otherwise.
const defaultQPS, defaultBurst = 50, 100

// defaultSync is the interval at which the status of works is reported.
const defaultSync = "60s"

// arguments returns the arguments of one process of an agent: of registration, of works, or of
// both.
func arguments(p process, k *operatorv1.Klusterlet, asked settings.Asked, o deploymentOptions) []any {
	out := []string{p.command, "--spoke-cluster-name=" + o.cluster}
	if p.registration {
		out = append(out, registrationArguments(asked)...)
	}
	if p.work {
		out = append(out, workArguments(p, k, asked)...)
	}
	var gates []string
	if p.registration {
		gates = append(gates, asked.RegistrationGates...)
	}
	if p.work {
		gates = append(gates, asked.WorkGates...)
	}
	slices.Sort(gates)
	for _, gate := range gates {
		out = append(out, "--feature-gates="+gate)
	}
	out = append(out, requests(p, k)...)
	out = append(out, o.limits...)
	if o.managed != "" {
		out = append(out, "--spoke-kubeconfig="+spokePath+"/kubeconfig", "--terminate-on-files="+spokePath+"/kubeconfig")
	}
	list := make([]any, len(out))
	for i, argument := range out {
		list[i] = argument
	}
	return list
}

func registrationArguments(asked settings.Asked) []string {
	s := asked.Settings
	var out []string
	if len(s.Hubs) == 0 {
		out = append(out, "--bootstrap-kubeconfig="+bootstrapPath+"/kubeconfig")
	}
	for _, secret := range s.Hubs {
		out = append(out, "--bootstrap-kubeconfigs=/spoke/"+secret+"/kubeconfig")
	}
	if len(s.Hubs) > 0 {
		out = append(out, fmt.Sprintf("--hub-connection-timeout-seconds=%d", int(s.HubTimeout.Seconds())))
	}
	var urls []string
	for _, u := range s.ExternalServerURLs {
		if u.URL != "" {
			urls = append(urls, u.URL)
		}
	}
	if len(urls) > 0 {
		out = append(out, "--spoke-external-server-urls="+strings.Join(urls, ","))
	}
	if s.CertificateSeconds != 0 {
		out = append(out, fmt.Sprintf("--client-cert-expiration-seconds=%d", s.CertificateSeconds))
	}
	if len(s.Annotations) > 0 {
		out = append(out, "--cluster-annotations="+pairs(s.Annotations))
	}
	if s.AddOnDriver != "" {
		out = append(out, "--addon-kubeclient-registration-auth="+string(s.AddOnDriver))
	}
	if s.AddOnTokenSeconds != 0 {
		out = append(out, fmt.Sprintf("--addon-token-expiration-seconds=%d", s.AddOnTokenSeconds))
	}
	if s.MaxClaims != agent.DefaultMaxClaims || len(s.ReservedSuffixes) > 0 {
		out = append(out, fmt.Sprintf("--max-custom-cluster-claims=%d", s.MaxClaims))
		if len(s.ReservedSuffixes) > 0 {
			out = append(out, "--reserved-cluster-claim-suffixes="+strings.Join(s.ReservedSuffixes, ","))
		}
	}
	return out
}

// pairs joins key=value pairs, quoting one with a comma.
func pairs(values map[string]string) string {
	var fields []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		fields = append(fields, key+"="+values[key])
	}
	var out strings.Builder
	w := csv.NewWriter(&out)
	_ = w.Write(fields) // a strings.Builder cannot fail
	w.Flush()
	return strings.TrimSuffix(out.String(), "\n")
}

func workArguments(p process, k *operatorv1.Klusterlet, asked settings.Asked) []string {
	out := []string{
		"--workload-source-driver=kube", "--workload-source-config=" + hubPath + "/kubeconfig", "--agent-id=" + string(k.UID),
	}
	if !p.registration {
		// What also registers reads a renewed certificate without a new start.
		out = append(out, "--terminate-on-files="+hubPath+"/kubeconfig")
	}
	c := k.Spec.WorkConfiguration
	if c == nil {
		c = &operatorv1.WorkAgentConfiguration{}
	}
	interval := defaultSync
	if c.StatusSyncInterval != nil {
		interval = c.StatusSyncInterval.Duration.String()
	}
	out = append(out, "--status-sync-interval="+interval)
	if grace := asked.Settings.EvictionGrace; grace != 0 {
		out = append(out, "--appliedmanifestwork-eviction-grace-period="+grace.String())
	}
	if c.HubKubeAPIQPS != 0 {
		out = append(out, "--hub-kube-api-qps="+strconv.Itoa(int(c.HubKubeAPIQPS)))
	}
	if c.HubKubeAPIBurst != 0 {
		out = append(out, "--hub-kube-api-burst="+strconv.Itoa(int(c.HubKubeAPIBurst)))
	}
	return out
}

// requests returns the flags of the requests that a process may send: those of registration always,
// those of works as far as the spec sets them, of a process that does both the higher ones.
func requests(p process, k *operatorv1.Klusterlet) []string {
	var qps, burst int32
	if p.registration {
		qps, burst = defaultQPS, defaultBurst
		if c := k.Spec.RegistrationConfiguration; c != nil {
			qps, burst = cmp.Or(c.KubeAPIQPS, qps), cmp.Or(c.KubeAPIBurst, burst)
		}
	}
	if c := k.Spec.WorkConfiguration; p.work && c != nil {
		qps, burst = max(qps, c.KubeAPIQPS), max(burst, c.KubeAPIBurst)
	}
	var out []string
	if qps != 0 {
		out = append(out, fmt.Sprintf("--kube-api-qps=%d", qps))
	}
	if burst != 0 {
		out = append(out, fmt.Sprintf("--kube-api-burst=%d", burst))
	}
	return out
}
