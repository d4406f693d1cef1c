// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// The ConfigMap that Kubernetes keeps in every namespace, with the authority of its API server.
const (
	configMapRootCA = "kube-root-ca.crt"
	keyRootCA       = "ca.crt"
)

// authoritiesKept is how long authorities are not read again.
const authoritiesKept = 2 * time.Second

// authorities verify the certificates of Services: that of the cluster, and those that its
// administrator has added. Never those of the machine, which vouch for names outside.
type authorities struct {
	client    dynamic.Interface
	namespace string
	clock     clock.PassiveClock

	mu   sync.Mutex
	pool *x509.CertPool
	at   time.Time
}

// get returns the authorities, as they are or were a moment ago; at least one.
func (a *authorities) get(ctx context.Context) (*x509.CertPool, error) {
	a.mu.Lock()
	pool, fresh := a.pool, a.pool != nil && a.clock.Since(a.at) < authoritiesKept
	a.mu.Unlock()
	if fresh {
		return pool, nil
	}
	pool, err := a.read(ctx)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pool, a.at = pool, a.clock.Now()
	return pool, nil
}

func (a *authorities) read(ctx context.Context) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), false
	for _, from := range []struct{ name, key string }{{configMapRootCA, keyRootCA}, {connectv1alpha1.ConfigMapServiceCA, connectv1alpha1.KeyServiceCA}} {
		m, err := typed.Get[corev1.ConfigMap](ctx, a.client, configMaps, a.namespace, from.name)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !pool.AppendCertsFromPEM([]byte(m.Data[from.key])) {
			return nil, fmt.Errorf("key %s of ConfigMap %s/%s has no certificate", from.key, a.namespace, from.name)
		}
		found = true
	}
	if !found {
		return nil, errors.New("there is no ConfigMap " + configMapRootCA + " in namespace " + a.namespace)
	}
	return pool, nil
}
