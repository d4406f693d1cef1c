// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// mounted follows the access to the hub that another process, the registration, keeps in a
// secret and that this process has as files, and runs a session with it. While the files cannot
// be used, the session goes on with what it has.
type mounted struct {
	p        *process
	sessions agent.Sessions
	// seen is what the session has, expires when its certificate does.
	seen    map[string][]byte
	expires time.Time
	// problem holds the string that says why the files cannot be used.
	problem atomic.Value
}

func (p *process) newMounted() *mounted {
	m := &mounted{p: p, sessions: agent.Sessions{UserAgent: userAgent(), Serve: p.serve}}
	m.problem.Store("not read yet")
	return m
}

// ready returns why there is no access to the hub.
func (m *mounted) ready() error {
	if text, _ := m.problem.Load().(string); text != "" {
		return errors.New(text)
	}
	return nil
}

// run follows the files until ctx ends.
func (m *mounted) run(ctx context.Context) error {
	defer m.sessions.End()
	ticker := m.p.clock.NewTicker(filesEvery)
	defer ticker.Stop()
	for {
		text := ""
		if err := m.follow(ctx); err != nil {
			text = err.Error()
		}
		if before := m.problem.Swap(text); text != "" && before != text {
			m.p.log.Info("The mounted hub kubeconfig cannot be used; waiting for another", "problem", text)
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// follow keeps the session of the files running.
func (m *mounted) follow(ctx context.Context) error {
	data, err := kubeconfig.ReadMounted(inPod(m.p.o.hubKubeconfig), clusterv1.SecretKeyTLSCert, clusterv1.SecretKeyTLSKey, clusterv1.SecretKeyClusterName)
	if err != nil {
		return err
	}
	if !maps.EqualFunc(data, m.seen, slices.Equal) {
		if err := m.take(ctx, data); err != nil {
			return err
		}
		m.seen = data
	}
	return m.checkTime()
}

// take starts a session with the content of the files, or gives it to the one that runs.
func (m *mounted) take(ctx context.Context, data map[string][]byte) error {
	kept, settings := credential.ReadKept(credential.Secret{Data: data}, true), m.p.o.settings
	id, name := kept.Certified(), cmp.Or(settings.ClusterName, kept.Identity.Cluster)
	switch {
	case kept.Problem != "":
		return errors.New(kept.Problem)
	case name == "":
		return fmt.Errorf("--spoke-cluster-name is not given, and there is no file %s", clusterv1.SecretKeyClusterName)
	case name != id.Cluster:
		return fmt.Errorf("the certificate is for cluster %q, not for %q", id.Cluster, name)
	}
	m.expires = kept.Expires
	if err := m.checkTime(); err != nil {
		return err
	}
	return m.sessions.Keep(ctx, agent.Access{Config: kept.Config, Identity: id, HubID: kept.HubID(), Settings: settings})
}

func (m *mounted) checkTime() error {
	if m.p.clock.Now().Before(m.expires) {
		return nil
	}
	return errors.New("the certificate has expired: the registration has to renew it")
}
