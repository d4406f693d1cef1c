// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

const (
	// Interval is the time between two renewals.
	Interval = time.Minute
	// Jitter is the largest part of the interval that is added to it.
	Jitter = 0.25
	// retryDelay is how soon a failed write is retried.
	retryDelay = 10 * time.Second
	// checkTimeout bounds all checks together, callTimeout one write.
	checkTimeout, callTimeout = 30 * time.Second, 10 * time.Second
)

var resource = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// Check returns why the agent does not work, or nil if it does. It is called before each
// renewal, and must return when its context ends.
type Check func(ctx context.Context) error

// Options of Run; all but Checks are required.
type Options struct {
	// Client reaches the cluster that the agent runs on.
	Client dynamic.Interface
	// Namespace is where the agent is installed; AddOn is the name of the add-on.
	Namespace, AddOn string
	// Clock times the renewals.
	Clock clock.Clock
	// Random returns numbers from 0 to 1 for the jitter, without which the agents of a
	// cluster would all write at the same moment.
	Random func() float64
	// Checks are called in order. While one fails the lease is not renewed, and after five
	// minutes the add-on is unavailable.
	Checks []Check
}

// Run renews the lease until ctx ends, and logs to the logger of ctx what keeps it from
// doing so. If an option is missing, it returns at once with an error that names it.
func Run(ctx context.Context, o Options) error {
	if err := o.missing(); err != nil {
		return err
	}
	log := logr.FromContextOrDiscard(ctx).WithValues("namespace", o.Namespace, "lease", o.AddOn)
	for {
		delay := Interval
		if err := o.check(ctx); err != nil {
			log.Error(err, "Lease is not renewed because the agent does not work")
		} else if err := o.renew(ctx); err != nil {
			log.Error(err, "Lease could not be renewed and will be tried again")
			delay = retryDelay
		}
		timer := o.Clock.NewTimer(delay + time.Duration(o.Random()*Jitter*float64(delay)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

func (o Options) missing() error {
	switch {
	case o.Client == nil:
		return errors.New("renewing the lease of an add-on: client: must be set; make one for the cluster that the agent runs on")
	case o.Namespace == "":
		return errors.New("renewing the lease of an add-on: namespace: must be set; use the one that the agent is installed in")
	case o.AddOn == "":
		return errors.New("renewing the lease of an add-on: add-on: must be set; use the name of the ManagedClusterAddOn")
	case o.Clock == nil || o.Random == nil:
		return errors.New("renewing the lease of an add-on: clock and random: must be set")
	}
	return nil
}

// check runs all checks within checkTimeout.
func (o Options) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for _, c := range o.Checks {
		if err := c(ctx); err != nil {
			return err
		}
	}
	return nil
}

// renew writes the current time to the lease, and creates the lease if it does not exist.
func (o Options) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	content := map[string]any{"spec": map[string]any{
		"leaseDurationSeconds": int64(Interval / time.Second),
		// A MicroTime has exactly six decimals.
		"renewTime": o.Clock.Now().UTC().Format(metav1.RFC3339Micro),
	}}
	patch, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding the lease: %w", err)
	}
	leases := o.Client.Resource(resource).Namespace(o.Namespace)
	_, err = leases.Patch(ctx, o.AddOn, types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	lease := &unstructured.Unstructured{Object: content}
	lease.SetAPIVersion(resource.GroupVersion().String())
	lease.SetKind("Lease")
	lease.SetNamespace(o.Namespace)
	lease.SetName(o.AddOn)
	_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	return err
}
