// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/tools/image/oci"
)

// pageAddOn is an add-on from a template: the page of the demo, without access to the hub. %s is
// the image.
const pageAddOn = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata:
  name: page
  annotations:
    addon.open-cluster-management.io/lifecycle: addon-manager
spec:
  supportedConfigs:
  - group: addon.open-cluster-management.io
    resource: addontemplates
    defaultConfig:
      name: page
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata:
  name: page
spec:
  addonName: page
  agentSpec:
    workload:
      manifests:
      - apiVersion: apps/v1
        kind: Deployment
        metadata:
          name: page
          namespace: open-cluster-management-agent-addon
        spec:
          selector:
            matchLabels:
              app: page
          template:
            metadata:
              labels:
                app: page
            spec:
              containers:
              - name: page
                image: %s
                ports:
                - containerPort: 8080
`

// split installs a hub of separate Deployments, which registers a cluster, applies a work on it and
// gives it an add-on.
func (l *life) split(t *testing.T) {
	begin := time.Now()
	l.ocm(t, "hub", "init", "--context", "hub", "--layout", "split")
	t.Logf("measured: hub init --layout split to ready %.2f s", time.Since(begin).Seconds())
	running := kubectl(t, l.hub, "-n", "open-cluster-management-hub", "get", "deployments", "-o", "name")
	for _, name := range []string{"registration-controller", "registration-webhook", "work-webhook", "placement-controller", "addon-manager-controller"} {
		require.Contains(t, running, "cluster-manager-"+name)
	}
	l.ocm(t, "join", "c1", "--context", "c1", "--hub-context", "hub", "--accept")
	l.awaitAvailable(t, "c1")
	kubectl(t, l.hub, "apply", "-f", work(t, "c1", "greeting"))
	l.becomes(t, "c1", "manifestwork", "greeting", "Applied")
	kubectl(t, l.on("c1"), "get", "configmap", "greeting")

	path := filepath.Join(t.TempDir(), "page.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, pageAddOn, oci.DefaultRepository+"/webdemo:"+version(t)), 0o600))
	kubectl(t, l.hub, "apply", "-f", path)
	l.ocm(t, "addon", "enable", "page", "-c", "c1", "--context", "hub")
	l.becomes(t, "c1", "managedclusteraddon", "page", "Available")
	kubectl(t, l.on("c1"), "-n", placedNamespace, "rollout", "status", "deployment/page", "--timeout=1m")
}

// becomes waits until a condition of an object in the namespace of a cluster is True.
func (l *life) becomes(t *testing.T, cluster, kind, name, state string) {
	t.Helper()
	of := condition(t, l.hub, kind, name, "-n", cluster)
	eventually(t, func() error {
		if status := of(state); status != "True" {
			return fmt.Errorf("%s is %q", strings.ToLower(state), status)
		}
		return nil
	})
}

// splitLeaves removes all of that.
func (l *life) splitLeaves(t *testing.T) {
	l.ocm(t, "addon", "disable", "page", "-c", "c1", "--context", "hub", "--yes")
	kubectl(t, l.hub, "delete", "clustermanagementaddon/page", "addontemplate/page", "--timeout=1m")
	kubectl(t, l.hub, "-n", "c1", "delete", "manifestwork", "greeting", "--timeout=1m")
	begin := time.Now()
	l.ocm(t, "unjoin", "c1", "--context", "c1", "--hub-context", "hub", "--yes")
	t.Logf("measured: unjoin c1 %.2f s", time.Since(begin).Seconds())
	l.requireAsBefore(t, l.on("c1"))
	l.clean(t)
}
