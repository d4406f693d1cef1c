// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply/ignore"
	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/internal/feedback"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// adviser names the parts of an admitted object that will not work. They are shown as
// warnings: agents of other versions may support more.
type adviser func(ctx context.Context, r *admissionv1.AdmissionRequest) []string

const (
	// maxAdvice is the most warnings in one response, maxAdviceBytes the longest warning; an
	// API server truncates longer ones.
	maxAdvice      = 8
	maxAdviceBytes = 256
)

// advise collects the warnings of the advisers within the bounds. It returns none if one of
// them panics: a valid object is not refused for that.
func advise(ctx context.Context, request *admissionv1.AdmissionRequest, advisers []adviser) (out []string) {
	defer func() {
		if recover() != nil {
			out = nil
		}
	}()
	for _, a := range advisers {
		out = append(out, a(ctx, request)...)
	}
	if len(out) > maxAdvice {
		out = append(out[:maxAdvice-1], fmt.Sprintf("and %d more like these", len(out)-maxAdvice+1))
	}
	for i, text := range out {
		out[i] = excerpt.Within(text, maxAdviceBytes)
	}
	return out
}

// maxCheckedBytes is the total length of CEL expressions of one object that are compiled to
// check whether they can work; the rest is not checked.
const maxCheckedBytes = 64 << 10

// adviseWork warns about rules of a work that can never yield a value.
func (s *Server) adviseWork(_ context.Context, c change[workv1.ManifestWork]) []string {
	if c.now.DeletionTimestamp != nil || reflect.DeepEqual(c.now.Spec, c.old.Spec) {
		return nil
	}
	return s.adviseSpec("spec.", &c.now.Spec)
}

// adviseSpec checks everything by which a work selects, reads and evaluates fields.
func (s *Server) adviseSpec(prefix string, spec *workv1.ManifestWorkSpec) []string {
	var out []string
	left := maxCheckedBytes
	for i, c := range spec.ManifestConfigs {
		at := fmt.Sprintf("%smanifestConfigs[%d].", prefix, i)
		for j, rule := range c.FeedbackRules {
			for k, path := range rule.JSONPaths {
				if err := feedback.CheckPath(path.Path); err != nil {
					out = append(out, fmt.Sprintf("%sfeedbackRules[%d].jsonPaths[%d].path: %q gives no value: %s", at, j, k, path.Path, err))
				}
			}
		}
		for _, p := range s.rules.Check(c.ConditionRules, c.ResourceIdentifier, &left) {
			out = append(out, at+p.Field+": "+p.Text)
		}
		if c.UpdateStrategy != nil && c.UpdateStrategy.ServerSideApply != nil {
			out = append(out, adviseIgnored(at+"updateStrategy.serverSideApply.", c.UpdateStrategy.ServerSideApply.IgnoreFields)...)
		}
	}
	return append(out, adviseJobs(prefix, spec)...)
}

// adviseIgnored checks the fields to ignore. An invalid one prevents the whole object from
// being applied.
func adviseIgnored(at string, entries []workv1.IgnoreField) []string {
	_, err := ignore.Parse(entries)
	var whole *ignore.Error
	if !errors.As(err, &whole) {
		return nil
	}
	var out []string
	for j, entry := range entries {
		check := func(notation string, texts []string, alone func([]string) workv1.IgnoreField) {
			for k, text := range texts {
				var fault *ignore.Error
				if _, err := ignore.Parse([]workv1.IgnoreField{alone([]string{text})}); errors.As(err, &fault) {
					out = append(out, fmt.Sprintf("%signoreFields[%d].%s[%d]: %q %s, and the object is not applied", at, j, notation, k, text, fault.Problem))
				}
			}
		}
		check("jsonPaths", entry.JSONPaths, func(one []string) workv1.IgnoreField { return workv1.IgnoreField{JSONPaths: one} })
		check("jsonPointers", entry.JSONPointers, func(one []string) workv1.IgnoreField { return workv1.IgnoreField{JSONPointers: one} })
		check("jqPathExpressions", entry.JQPathExpressions, func(one []string) workv1.IgnoreField { return workv1.IgnoreField{JQPathExpressions: one} })
	}
	if len(out) == 0 {
		out = []string{fmt.Sprintf("%signoreFields: %s, and the object is not applied", at, whole.Problem)}
	}
	return out
}

// adviseJobs warns about Jobs that would be created again and again: their time to live
// removes them, and no condition rule records that they were complete.
func adviseJobs(prefix string, spec *workv1.ManifestWorkSpec) []string {
	var out []string
	for i := range spec.Workload.Manifests {
		var job struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Metadata   struct {
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
			} `json:"metadata"`
			Spec struct {
				TTL *int64 `json:"ttlSecondsAfterFinished"`
			} `json:"spec"`
		}
		if json.Unmarshal(spec.Workload.Manifests[i].Raw, &job) != nil || job.Kind != "Job" || !strings.HasPrefix(job.APIVersion, "batch/") || job.Spec.TTL == nil {
			continue
		}
		id := apply.ID{Group: "batch", Resource: "jobs", Namespace: job.Metadata.Namespace, Name: job.Metadata.Name}
		if !slices.ContainsFunc(apply.RulesFor(spec, id).Conditions, func(r workv1.ConditionRule) bool { return r.Condition == workv1.ConditionComplete }) {
			out = append(out, fmt.Sprintf("%sworkload.manifests[%d]: the Job is created and run again each time its "+
				"ttlSecondsAfterFinished removes it; add a condition rule for Complete", prefix, i))
		}
	}
	return out
}
