// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
)

// maxMessage bounds the text of one failure in a condition, in bytes.
const maxMessage = 1024

// hints add to an API server's message what a user can do about it.
var hints = []struct{ text, hint string }{
	{"field is immutable", "such a field cannot be changed on an object that exists: delete the object on the cluster, or declare it under another name"},
	{"cannot change roleRef", "such a field cannot be changed on an object that exists: delete the object on the cluster, or declare it under another name"},
	{"is being terminated", "the namespace is being deleted; the object is applied when it is back"},
	{"is forbidden: User", `grant the agent the right, for example by a ClusterRole with the label open-cluster-management.io/aggregate-to-work: "true"`},
}

// Message returns the text for an error in a condition: the API server's message, bounded
// in length, with a hint where there is one. For Secrets it contains only the reason and
// field names, because servers quote values.
func Message(err error, secret bool) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if secret {
		text = redacted(err)
	}
	for _, h := range hints {
		if strings.Contains(err.Error(), h.text) {
			return excerpt.Within(text, maxMessage-len(h.hint)-2) + "; " + h.hint
		}
	}
	text = excerpt.Within(text, maxMessage)
	if apierrors.IsNotFound(err) && detailsOf(err).Kind == "namespaces" {
		return text + "; create the namespace, or declare it in the work"
	}
	return text
}

// redacted describes an API error without any text that could contain content.
func redacted(err error) string {
	var deleting *DeletingError
	if errors.As(err, &deleting) {
		return deleting.Error()
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return "the Secret could not be applied (details are withheld, they may hold its content)"
	}
	s := status.Status()
	var fields []string
	if s.Reason != "Conflict" {
		for _, c := range detailsOf(err).Causes {
			fields = append(fields, fmt.Sprintf("%s (%s)", c.Field, c.Type))
		}
	}
	text := fmt.Sprintf("the API server answered %s (code %d)", s.Reason, s.Code)
	if s.Reason == "" {
		text = fmt.Sprintf("the API server answered code %d", s.Code)
	}
	if len(fields) > 0 {
		text += " for " + strings.Join(fields, ", ")
	}
	return text + "; details are withheld, they may hold content of the Secret"
}
