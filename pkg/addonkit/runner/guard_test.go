// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/deploy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func TestAPanicOfAnAddOnIsAnErrorOfItsInstance(t *testing.T) {
	var logged []string
	ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	require.NoError(t, guarded(ctx, func() error { return nil }))
	own := errors.New("no value")
	require.Equal(t, own, guarded(ctx, func() error { return own }))
	require.Empty(t, logged)
	err := guarded(ctx, func() error {
		none := make([]error, len(logged))
		return none[len(logged)]
	})
	require.ErrorIs(t, err, errPanic)
	require.ErrorContains(t, err, "its log has the stack trace: panic: runtime error: index out of range")
	require.Len(t, logged, 1)
	require.Contains(t, logged[0], "guard_test.go")
}

// elsewhere is an add-on that decides where its agents run.
type elsewhere struct{ addonkit.AddOn }

func (elsewhere) HostingCluster(i addonkit.Instance) (string, bool) {
	return "host-of-" + i.AddOn.Namespace, i.AddOn.Namespace != "c0"
}

func TestAnAuthorSaysWhichClusterHosts(t *testing.T) {
	r := newRunner(Config{}, "x", nil, scope{hosted: true})
	defer r.close()
	require.Equal(t, &deploy.Hosting{Name: "host-of-c1"}, r.hosting(elsewhere{}, addonkit.Instance{AddOn: gone(reconcile.Key{Namespace: "c1", Name: "x"})}))
	require.Nil(t, r.hosting(elsewhere{}, addonkit.Instance{AddOn: gone(reconcile.Key{Namespace: "c0", Name: "x"})}))
}

func TestTheLoopOfOwnConfigurationsIsListedWhereItRuns(t *testing.T) {
	r := &Runner{newRunner(Config{}, "x", nil, scope{addOn: "x"})}
	defer r.close()
	require.Len(t, r.Loops(), 3)
	r.watchHashes([]schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}})
	require.Equal(t, []string{r.name("config")}, r.Loops()[3:])
}
