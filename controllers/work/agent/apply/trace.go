// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const (
	// maxTraces and maxTrace bound how many annotations of a work a log line
	// repeats, and how much of each, in bytes.
	maxTraces = 8
	maxTrace  = 128
)

// trace logs the end of a pass over a work whose annotations ask for it, with those
// annotations, so that one work can be followed through the logs of all processes.
func trace(ctx context.Context, work *workv1.ManifestWork, err error) {
	var keys []string
	for key := range work.Annotations {
		if strings.HasPrefix(key, workv1.AnnotationPrefixLogging) {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return
	}
	slices.Sort(keys)
	var values []any
	for _, key := range keys[:min(len(keys), maxTraces)] {
		value := work.Annotations[key]
		values = append(values, strings.TrimPrefix(key, workv1.AnnotationPrefixLogging), value[:min(len(value), maxTrace)])
	}
	cause := ""
	if err != nil {
		cause = err.Error()
	}
	logr.FromContextOrDiscard(ctx).Info("Finished a pass over a traced work",
		append(values, "work", work.Name, "generation", work.Generation, "cause", cause)...)
}
