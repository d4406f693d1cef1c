// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

func TestATracedWorkIsFollowedThroughTheLog(t *testing.T) {
	var lines []string
	ctx := logr.NewContext(context.Background(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	work := &workv1.ManifestWork{}
	work.Name, work.Generation = "web", 3
	work.Annotations = map[string]string{"other": "x"}
	trace(ctx, work, nil)
	require.Empty(t, lines, "a work that does not ask for it gets no log line")

	work.Annotations["logging.open-cluster-management.io/trace-id"] = "abc"
	work.Annotations["logging.open-cluster-management.io/long"] = strings.Repeat("x", 1000)
	trace(ctx, work, errors.New("broken"))
	require.Len(t, lines, 1)
	for _, part := range []string{`"trace-id"="abc"`, `"work"="web"`, `"generation"=3`, `"cause"="broken"`} {
		require.Contains(t, lines[0], part)
	}
	require.NotContains(t, lines[0], "other")
	for i := range 100 {
		work.Annotations[fmt.Sprintf("logging.open-cluster-management.io/a%d", i)] = strings.Repeat("x", 1000)
	}
	trace(ctx, work, nil)
	require.Less(t, len(lines[1]), 2000)
}
