// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/runner"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

// note brings a ConfigMap to each cluster, and nothing else.
type note struct{}

func (note) Options() addonkit.Options { return addonkit.Options{Name: "note"} }

func (note) Manifests(_ context.Context, i addonkit.Instance) ([]runtime.Object, error) {
	return []runtime.Object{&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "note"},
		Data:       map[string]string{"cluster": i.Cluster.Name},
	}}, nil
}

// Health depends on what is applied: a ConfigMap works once it exists.
func (note) Health() addonkit.Health { return addonkit.Health{Mode: addonkit.HealthWork} }

func run(ctx context.Context) error {
	config, err := inpod.Config() // of the hub, by the ServiceAccount of the pod
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	return runner.Run(ctx, runner.Config{Client: client, Clock: clock.RealClock{}}, note{})
}

// A whole add-on: two methods, and one that says how its health is read.
func Example() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
