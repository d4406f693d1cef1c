// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

// Feature gates of the registration agent.
const (
	GateClusterClaim               = "ClusterClaim"
	GateAddonManagement            = "AddonManagement"
	GateClusterProperty            = "ClusterProperty"
	GateMultipleHubs               = "MultipleHubs"
	GateClusterProxy               = connectv1alpha1.GateClusterProxy
	gateV1beta1CSRAPICompatibility = "V1beta1CSRAPICompatibility"
)

// Feature gates of the work agent.
const (
	GateRawFeedback             = "RawFeedbackJsonString"
	gateExecutorValidatingCache = "ExecutorValidatingCaches"
)

// Gate describes a feature gate.
type Gate struct {
	// Enabled reports whether it is on.
	Enabled bool
	// Served reports whether this agent implements it.
	Served bool
}

// Gates returns the known feature gates with their defaults.
func Gates() map[string]Gate {
	return map[string]Gate{
		GateClusterClaim:    {Enabled: true, Served: true},
		GateAddonManagement: {Enabled: true, Served: true},
		GateClusterProperty: {Served: true},
		GateMultipleHubs:    {Served: true},
		GateClusterProxy:    {Served: true},
		// Every hub that this agent joins serves certificates.k8s.io/v1.
		gateV1beta1CSRAPICompatibility: {},
	}
}

// WorkGates returns the gates of the work agent.
func WorkGates() map[string]Gate {
	return map[string]Gate{
		GateRawFeedback: {Served: true},
		// Behaves the same either way; see controllers/work/agent/executor for the reason.
		gateExecutorValidatingCache: {Served: true},
	}
}

// ParseGates applies entries of the form Name=true or Name=false to the known gates. It fails on
// an unknown gate, and on enabling a gate that this agent does not serve.
func ParseGates(known map[string]Gate, entries []string) (map[string]Gate, error) {
	gates := maps.Clone(known)
	for _, entry := range entries {
		name, value, _ := strings.Cut(strings.TrimSpace(entry), "=")
		g, known := gates[name]
		switch {
		case value != "true" && value != "false":
			return nil, fmt.Errorf("feature gate %q: must be Name=true or Name=false", entry)
		case !known:
			return nil, fmt.Errorf("feature gate %q does not exist; the feature gates are %s", name, strings.Join(slices.Sorted(maps.Keys(gates)), ", "))
		case value == "true" && !g.Served:
			return nil, fmt.Errorf("feature gate %s is not served by this agent: leave it out", name)
		}
		g.Enabled = value == "true"
		gates[name] = g
	}
	return gates, nil
}
