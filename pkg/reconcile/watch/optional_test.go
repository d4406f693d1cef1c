// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// definition returns a served definition.
func definition(name string, uid types.UID) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"versions": []any{map[string]any{"name": "v1", "served": true}}},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}},
	}}
	u.SetUID(uid)
	return u
}

// TestAnotherDefinitionOfTheSameNameIsFollowedAnew: a list that is repeated shows
// a definition that was deleted and created again meanwhile as one that changed. What
// watched the objects of the old one was cut off and waits before it asks again.
func TestAnotherDefinitionOfTheSameNameIsFollowedAnew(t *testing.T) {
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	require.NoError(t, err)
	p := NewOptional(Options[string]{
		Client: client, Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"},
		Keep: func(u *unstructured.Unstructured) (string, bool) { return u.GetName(), true },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			p.follow(ctx)
		}
	})
	defer func() { cancel(); running.Wait() }()
	followed := func() *Collection[string] {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.current
	}
	list := (*store)(p.definition.collection)
	await := func(like func(*Collection[string]) bool) (now *Collection[string]) {
		require.Eventually(t, func() bool { now = followed(); return like(now) }, time.Minute, time.Millisecond)
		return now
	}

	require.NoError(t, list.Replace([]any{definition("things.example.com", "one")}, "1"))
	first := await(func(c *Collection[string]) bool { return c != nil })
	require.NoError(t, list.Replace([]any{definition("things.example.com", "two")}, "2"))
	second := await(func(c *Collection[string]) bool { return c != nil && c != first })
	require.NoError(t, list.Replace(nil, "3"))
	await(func(c *Collection[string]) bool { return c == nil })
	_, known := p.List()
	require.True(t, known, "without a definition there are no objects")
	require.NotSame(t, first, second)
}
