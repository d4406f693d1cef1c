// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// tlsLimits are what limits the connections that the hub accepts: what the ConfigMap says, else
// the flags of the process. What cannot be read changes nothing.
type tlsLimits struct {
	given limits
	watch *watch.Collection[limits]

	mu  sync.Mutex
	now limits
}

// limits are those of one source; err is why it cannot be read.
type limits struct {
	profile observe.Profile
	tls     observe.TLS
	err     error
}

func watchLimits(client dynamic.Interface, given observe.Profile, log logr.Logger) *tlsLimits {
	// The process has checked its flags.
	tls, _ := observe.ParseTLS(given.MinVersion, given.Suites)
	t := &tlsLimits{given: limits{profile: given, tls: tls}}
	t.now = t.given
	t.watch = watch.New(watch.Options[limits]{
		Client: client, Resource: configMapsResource, Namespace: hub.Namespace, FieldSelector: byName(observe.ConfigMapProfile), Log: log,
		Keep: func(u *unstructured.Unstructured) (l limits, _ bool) {
			data, _, _ := unstructured.NestedStringMap(u.Object, "data")
			l.profile, l.tls, l.err = observe.ReadProfile(data)
			return l, true
		},
	})
	t.watch.OnChange(func(k reconcile.Key) {
		read, found := t.watch.Get(k)
		t.mu.Lock()
		defer t.mu.Unlock()
		switch {
		case !found:
			t.now = t.given
		case read.err != nil:
			t.now.err = fmt.Errorf("ConfigMap %s/%s is not in effect: %w", hub.Namespace, observe.ConfigMapProfile, read.err)
			log.Error(t.now.err, "The limits of connections stay as they are")
		default:
			t.now = read
		}
	})
	return t
}

func (t *tlsLimits) current() limits {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

// argsFor returns the limits as flags of the components. While the ConfigMap cannot be read,
// they are those of the Deployment that is there.
func (l limits) argsFor(live *unstructured.Unstructured) []string {
	if l.err == nil || live == nil {
		return l.profile.Args()
	}
	var out []string
	containers, _, _ := unstructured.NestedSlice(live.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		m, _ := c.(map[string]any)
		args, _, _ := unstructured.NestedStringSlice(m, "args")
		out = append(out, slices.DeleteFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "--tls-") })...)
	}
	return out
}
