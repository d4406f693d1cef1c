// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// Guard returns a source for one reflector, whose watches go on only where the API server still
// has the state that the reflector has seen. A server that was restored from a backup would accept
// such a watch and be silent until it reaches the version again. The reflector lists everything
// then. Only a watch that ended early, or could not begin, costs a request to find out.
func Guard(source *cache.ListWatch) *cache.ListWatch {
	g := &guard{source: source, clock: clock.RealClock{}}
	return &cache.ListWatch{ListWithContextFunc: g.list, WatchFuncWithContext: g.watch}
}

type guard struct {
	source *cache.ListWatch
	clock  clock.PassiveClock

	mu sync.Mutex
	// broken is true after a watch that could not begin, until is when the last one ends by itself.
	broken bool
	until  time.Time
}

func (g *guard) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	g.set(false, time.Time{})
	return g.source.ListWithContext(ctx, o)
}

func (g *guard) watch(ctx context.Context, o metav1.ListOptions) (apiwatch.Interface, error) {
	if o.SendInitialEvents == nil && g.isBroken() {
		if err := g.check(ctx, o.ResourceVersion); err != nil {
			g.set(true, time.Time{})
			return nil, err
		}
	}
	end := g.clock.Now()
	if o.TimeoutSeconds != nil {
		end = end.Add(time.Duration(*o.TimeoutSeconds) * time.Second)
	}
	w, err := g.source.WatchWithContext(ctx, o)
	g.set(err != nil, end)
	return w, err
}

func (g *guard) set(broken bool, until time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.broken, g.until = broken, until
}

func (g *guard) isBroken() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.broken || g.clock.Now().Before(g.until)
}

// check returns an error of the reason Expired if the API server's state is older than a version.
func (g *guard) check(ctx context.Context, version string) error {
	list, err := g.source.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	about, err := apimeta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("reading the version of a list: %w", err)
	}
	if order, err := resourceversion.CompareResourceVersion(about.GetResourceVersion(), version); err == nil && order < 0 {
		return apierrors.NewResourceExpired("the API server went back from version " + version + " to " + about.GetResourceVersion())
	}
	return nil
}
