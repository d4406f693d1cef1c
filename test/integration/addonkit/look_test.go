// SPDX-License-Identifier: Apache-2.0

package addonkit_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/addontest"
)

// weather is an add-on whose manifests depend on something outside its instances and
// clusters.
type weather struct{ today atomic.Value }

func (*weather) Options() addonkit.Options { return addonkit.Options{Name: "weather"} }

func (w *weather) Manifests(context.Context, addonkit.Instance) ([]runtime.Object, error) {
	return []runtime.Object{&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "weather"},
		Data:       map[string]string{"today": w.today.Load().(string)},
	}}, nil
}

func TestAnAuthorLooksAgainAtAnInstance(t *testing.T) {
	w := &weather{}
	w.today.Store("sunny")
	h := addontest.New(t, w)
	here := h.Install("c1", "")
	tells := func(what string) {
		h.Soon(what, func() error {
			work, err := typed.Get[workv1.ManifestWork](t.Context(), h.Admin, addontest.Works, "c1", "addon-weather-deploy-0")
			if err != nil {
				return err
			}
			if raw := string(work.Spec.Workload.Manifests[0].Raw); !strings.Contains(raw, what) {
				return fmt.Errorf("it is %s", raw)
			}
			return nil
		})
	}
	tells("sunny")
	w.today.Store("rainy")
	h.Runner.Look(here)
	tells("rainy")
}
