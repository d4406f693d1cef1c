// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
)

// maxWorks bounds the works of one cluster that are told of one by one.
const maxWorks = 5

// works names the works of a cluster that fail, or hang in their deletion, with the
// object and the cause. Of a cluster that is away its own finding tells.
func (c *checking) works(ctx context.Context, info ClusterInfo, all *judged) []Finding {
	if info.Status != ClusterAvailable && info.Status != ClusterDeleting {
		return nil
	}
	var out []Finding
	left := 0
	for i := range all.works[info.Name] {
		u := &all.works[info.Name][i]
		w, err := workInfo(u)
		if err != nil {
			continue
		}
		f := c.work(&w, info.Status)
		if w.State == WorkDeleting {
			f = c.goingWork(ctx, u, all)
		}
		switch {
		case f == nil:
		case len(out) == maxWorks:
			left++
		default:
			out = append(out, *f)
		}
	}
	if left > 0 {
		out = append(out, Finding{Code: codeClusterWorks, Severity: SeverityWarning, Title: many(left, "more work") + " of it are not well", Fix: "kubectl ocm work list -c " + info.Name + c.o.Hub.flag()})
	}
	return out
}

// work is what is wrong with one; nil means nothing. What is not answered yet may
// still be on its way.
func (c *checking) work(w *WorkInfo, cluster string) *Finding {
	f := &Finding{Code: codeClusterWorks, Severity: SeverityWarning, Cause: w.Message,
		Fix: fmt.Sprintf("kubectl ocm work tree %s -c %s%s", w.Name, w.Cluster, c.o.Hub.flag())}
	switch {
	case cluster != ClusterAvailable:
		return nil
	case w.State == WorkApplyFailed:
		f.Title = fmt.Sprintf("work %s is not applied, %d of %d objects are well", w.Name, w.Objects.Good, w.Objects.Total)
	case w.State == WorkNotAvailable:
		f.Title = fmt.Sprintf("work %s is not available, %d of %d objects are well", w.Name, w.Objects.Good, w.Objects.Total)
	case w.State == WorkPending && c.run.now().Sub(w.Created.Time) >= patient:
		f.Title = fmt.Sprintf("work %s is not applied: its agent has not answered generation %d", w.Name, w.Generation)
	default:
		return nil
	}
	return f
}

// goingWork tells of a work whose deletion hangs, and what holds it.
func (c *checking) goingWork(ctx context.Context, u *unstructured.Unstructured, all *judged) *Finding {
	age := c.run.now().Sub(u.GetDeletionTimestamp().Time)
	b := all.going.blocker(ctx, u)
	if age < patient || b == nil {
		return nil
	}
	f := &Finding{Code: codeClusterWorks, Severity: SeverityWarning, Title: "work " + u.GetName() + " is being deleted for " + duration.HumanDuration(age), Cause: b.cause,
		Fix: fmt.Sprintf("kubectl ocm work list %s -c %s%s", u.GetName(), u.GetNamespace(), c.o.Hub.flag())}
	if strings.HasPrefix(b.fix, "kubectl ") {
		f.Fix = b.fix
	}
	return f
}
