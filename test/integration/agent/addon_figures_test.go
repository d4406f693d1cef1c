// SPDX-License-Identifier: Apache-2.0

//go:build perf

package agent_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// perAddOn is the maximum memory that an add-on with a credential and a lease adds, in
// bytes.
const perAddOn = 200 << 10

// TestResidentMemoryWithAddOns checks the memory budget with ten works and five add-ons
// with a credential and a lease each, and measures the same without the feature gate,
// which shows their cost.
func TestResidentMemoryWithAddOns(t *testing.T) {
	t.Parallel()
	for name, addOns := range map[string]int{"off": 0, "five": 5} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newAddonHub(t)
			cluster := "figures-addons-" + name
			s, a := joined(t, h, cluster, func(o *config.Options) {
				if addOns == 0 {
					o.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
						FeatureGates: []operatorv1.FeatureGate{{Feature: "AddonManagement", Mode: operatorv1.FeatureGateModeTypeDisable}}}
				}
			})
			for i := range 10 {
				h.deliver(t, cluster, fmt.Sprintf("work-%d", i))
			}
			for i := range addOns {
				addOn := fmt.Sprintf("addon-%d", i)
				h.enable(t, cluster, addOn, kubeClient())
				h.grant(t, cluster, addOn)
				renew(t, s.client, addonSpace, addOn, 0)
				h.awaitAddon(t, cluster, addOn, rotated, metav1.ConditionTrue, "ClientCertificateUpdated", "")
				h.awaitAddon(t, cluster, addOn, available, metav1.ConditionTrue, "ManagedClusterAddOnLeaseUpdated", "")
			}
			await(t, func() bool { return h.applied(t, cluster) == 10 })
			rests(t)
			got := a.memory(t)
			t.Logf("measured: 10 works and %d add-ons: %s", addOns, got)
			require.LessOrEqual(t, got.Anon, int64(mostAnon)+int64(addOns)*perAddOn)
			require.LessOrEqual(t, got.Resident, int64(mostResident)+int64(addOns)*perAddOn)
		})
	}
}
