// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rollout is how far a change has reached the clusters that get it.
type Rollout struct {
	// Total is how many clusters get it. Of these, Done have it with success, Running have it and
	// have not succeeded yet, Failed did not succeed in time, and Waiting do not have it yet.
	Total   int `json:"total"`
	Done    int `json:"done"`
	Running int `json:"running"`
	Failed  int `json:"failed"`
	Waiting int `json:"waiting"`
	// Since is when it began or, once it is complete, when it ended; nil if nothing records it.
	Since *metav1.Time `json:"since,omitempty"`
}

// Complete reports whether all clusters have the change with success.
func (r *Rollout) Complete() bool { return r.Done == r.Total }

// Add adds the counts of another one.
func (r *Rollout) Add(other Rollout) {
	r.Total += other.Total
	r.Done += other.Done
	r.Running += other.Running
	r.Failed += other.Failed
	r.Waiting += other.Waiting
}
