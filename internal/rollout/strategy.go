// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
)

// Strategy is a parsed and valid RolloutStrategy. The zero value is All without a
// deadline.
type Strategy struct {
	kind clusterv1alpha1.RolloutType
	// soak is how long a success must last before it counts.
	soak time.Duration
	// deadline is how long a cluster may take; negative means no limit.
	deadline time.Duration
	// failures and concurrency are relative to a number of clusters.
	failures, concurrency intstr.IntOrString
	mandatory             []clusterv1alpha1.MandatoryDecisionGroup
	// resumed is the time until which failures are forgiven; zero forgives none.
	resumed time.Time
}

// Resumed returns the strategy of a rollout that a user resumed at the given time:
// clusters that had failed or timed out by then no longer count against maxFailures or
// the concurrency, and block no group. They stay in the list of the Plan for their state.
// Later failures count as before.
func (s Strategy) Resumed(at time.Time) Strategy {
	s.resumed = at
	return s
}

// Parse parses a strategy. An empty type means All, a missing block its defaults. The
// error names the field and its allowed values.
func Parse(s clusterv1alpha1.RolloutStrategy) (Strategy, error) {
	out := Strategy{kind: s.Type, deadline: -1}
	var (
		config clusterv1alpha1.RolloutConfig
		field  string
		err    error
	)
	switch s.Type {
	case clusterv1alpha1.RolloutTypeAll, "":
		out.kind, field = clusterv1alpha1.RolloutTypeAll, "all"
		if s.All != nil {
			// Everything is rolled out at once: there is nothing to soak or to fail for.
			config.ProgressDeadline = s.All.ProgressDeadline
		}
	case clusterv1alpha1.RolloutTypeProgressive:
		field = "progressive"
		if p := s.Progressive; p != nil {
			config, out.mandatory = p.RolloutConfig, p.MandatoryDecisionGroups.MandatoryDecisionGroups
			if out.concurrency, err = parseSize(p.MaxConcurrency); err != nil {
				return Strategy{}, fmt.Errorf("progressive.maxConcurrency: %w", err)
			}
		}
	case clusterv1alpha1.RolloutTypeProgressivePerGroup:
		field = "progressivePerGroup"
		if p := s.ProgressivePerGroup; p != nil {
			config, out.mandatory = p.RolloutConfig, p.MandatoryDecisionGroups.MandatoryDecisionGroups
		}
	default:
		return Strategy{}, fmt.Errorf("type: %q is none of All, Progressive, ProgressivePerGroup", s.Type)
	}
	if out.deadline, err = parseDeadline(config.ProgressDeadline); err != nil {
		return Strategy{}, fmt.Errorf("%s.progressDeadline: %w", field, err)
	}
	if out.failures, err = parseSize(&config.MaxFailures); err != nil {
		return Strategy{}, fmt.Errorf("%s.maxFailures: %w", field, err)
	}
	if out.soak = config.MinSuccessTime.Duration; out.soak < 0 {
		return Strategy{}, fmt.Errorf("%s.minSuccessTime: %s must not be negative", field, out.soak)
	}
	return out, nil
}

// parseDeadline parses a progressDeadline; negative means none.
func parseDeadline(text string) (time.Duration, error) {
	if text == "" || text == clusterv1alpha1.ProgressDeadlineNone {
		return -1, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is neither None nor a duration such as 10m", text)
	}
	return d, nil
}

// parseSize checks a number or a percentage; nil is 0.
func parseSize(v *intstr.IntOrString) (intstr.IntOrString, error) {
	if v == nil {
		return intstr.IntOrString{}, nil
	}
	text, percent := strings.CutSuffix(v.StrVal, "%")
	n, err := strconv.Atoi(text)
	switch {
	case v.Type == intstr.Int && v.IntVal < 0:
		return *v, fmt.Errorf("%d must not be negative", v.IntVal)
	case v.Type != intstr.Int && (!percent || err != nil || n < 0 || n > 100):
		return *v, fmt.Errorf("%q is neither a number nor a percentage from 0%% to 100%%", v.StrVal)
	}
	return *v, nil
}

// sizeOf returns a parsed size for total clusters, at most total; a percentage is rounded
// up.
func sizeOf(size intstr.IntOrString, total int) int {
	n, _ := intstr.GetScaledValueFromIntOrPercent(&size, total, true)
	return min(n, total)
}
