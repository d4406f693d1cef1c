// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Feature gates of the registration agent.
const (
	GateClusterClaim               = "ClusterClaim"
	GateAddonManagement            = "AddonManagement"
	GateClusterProperty            = "ClusterProperty"
	GateMultipleHubs               = "MultipleHubs"
	gateV1beta1CSRAPICompatibility = "V1beta1CSRAPICompatibility"
)

// Feature gates of the work agent.
const (
	GateRawFeedback             = "RawFeedbackJsonString"
	gateExecutorValidatingCache = "ExecutorValidatingCaches"
)

// Gate is what is known of a feature gate.
type Gate struct {
	// Enabled tells whether it is on.
	Enabled bool
	// Served tells whether this agent does what the gate stands for.
	Served bool
}

// Gates are the known feature gates as they stand without a word about them.
func Gates() map[string]Gate {
	return map[string]Gate{
		GateClusterClaim:    {Enabled: true, Served: true},
		GateAddonManagement: {Enabled: true, Served: true},
		GateClusterProperty: {Served: true},
		GateMultipleHubs:    {Served: true},
		// Every hub that this agent joins serves certificates.k8s.io/v1.
		gateV1beta1CSRAPICompatibility: {},
	}
}

// WorkGates are those of the work agent, which runs in the same process.
func WorkGates() map[string]Gate {
	return map[string]Gate{
		GateRawFeedback: {Served: true},
		// The same with and without it: controllers/work/agent/executor says why.
		gateExecutorValidatingCache: {Served: true},
	}
}

// ParseGates switches gates of both agents by entries of the form Name=true or Name=false. It
// fails on a gate that does not exist, and on one that is switched on and that
// this agent does not serve.
func ParseGates(entries []string) (map[string]Gate, error) {
	gates := Gates()
	maps.Copy(gates, WorkGates())
	for _, entry := range entries {
		name, value, _ := strings.Cut(strings.TrimSpace(entry), "=")
		g, known := gates[name]
		switch {
		case value != "true" && value != "false":
			return nil, fmt.Errorf("feature gate %q: must be Name=true or Name=false", entry)
		case !known:
			return nil, fmt.Errorf("feature gate %q does not exist; there are %s", name, strings.Join(slices.Sorted(maps.Keys(gates)), ", "))
		case value == "true" && !g.Served:
			return nil, fmt.Errorf("feature gate %s is not served by this agent: leave it out", name)
		}
		g.Enabled = value == "true"
		gates[name] = g
	}
	return gates, nil
}
