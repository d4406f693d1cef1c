// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// hook is a Job that an add-on waits for before it is removed. No node runs it.
const hook = `
---
apiVersion: batch/v1
kind: Job
metadata:
  name: farewell
  namespace: default
  annotations: {addon.open-cluster-management.io/addon-pre-delete: ""}
spec:
  template: {spec: {restartPolicy: Never, containers: [{name: farewell, image: example.com/farewell:v1}]}}
`

// lateFaults are faults that become findings a minute after they were planted. Other
// tests run in the meantime.
type lateFaults struct {
	hub     *harness.Cluster
	client  dynamic.Interface
	request string
	planted time.Time
}

// plantLate plants an add-on that waits for its hook, and one whose agent waits for a
// certificate.
func plantLate(t *testing.T, hub *harness.Cluster) *lateFaults {
	t.Helper()
	late := &lateFaults{hub: hub, client: hub.Dynamic(t)}
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "all.yaml"), []byte(configMap+hook), 0o600))
	require.Zero(t, run(t, "addon", "create", "hooked", "-f", folder, "--context", "hub").code)
	require.Zero(t, run(t, "addon", "enable", "hooked", "-c", "cluster1", "--context", "hub", "--wait", "--timeout", "5m").code)
	require.Zero(t, run(t, "addon", "disable", "hooked", "-c", "cluster1", "--context", "hub", "--yes", "--wait=false").code)

	noSpec := map[string]any{"spec": map[string]any{}}
	registration := object(registrations.GroupVersion().String(), "ClusterManagementAddOn", "", "asks", noSpec)
	_, err := late.client.Resource(registrations).Create(t.Context(), registration, metav1.CreateOptions{})
	require.NoError(t, err)
	one := object(instances.GroupVersion().String(), "ManagedClusterAddOn", "cluster1", "asks", noSpec)
	addOns := late.client.Resource(instances).Namespace("cluster1")
	_, err = addOns.Create(t.Context(), one, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = addOns.Patch(t.Context(), "asks", types.MergePatchType, []byte(`{"status":{"conditions":[{"type":"RegistrationApplied","status":"True",`+
		`"reason":"Test","message":"as the test says","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	late.request = late.requestCertificate(t)
	late.planted = time.Now()
	return late
}

// requestCertificate sends a request as the agent of the add-on would, which is never
// answered.
func (l *lateFaults) requestCertificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "asks", Organization: []string{"asks"}}}, key)
	require.NoError(t, err)
	u := object(requests.GroupVersion().String(), "CertificateSigningRequest", "", "addon-cluster1-asks-x", map[string]any{"spec": map[string]any{
		"request":    base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})),
		"signerName": "example.com/asks", "usages": []any{"client auth"}}})
	u.SetLabels(map[string]string{"open-cluster-management.io/cluster-name": "cluster1", "open-cluster-management.io/addon-name": "asks"})
	made, err := l.client.Resource(requests).Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
	return made.GetName()
}

// mended runs the fixes that check prints for both.
func (l *lateFaults) mended(t *testing.T) {
	t.Logf("the other stories took %s", time.Since(l.planted).Round(time.Second))
	f := found(t, "OCM0708", "addon", "hooked", "--context", "hub")
	require.Contains(t, f.Cause, "its hook has not completed")
	look, giveUp, both := strings.Cut(f.Fix, "      shows the work of the hook; ")
	require.True(t, both, f.Fix)
	require.Contains(t, typeLine(t, look), "addon-hooked-pre-delete")
	typeLine(t, strings.TrimSuffix(giveUp, " gives it up"))
	eventually(t, func() bool {
		_, err := l.client.Resource(instances).Namespace("cluster1").Get(t.Context(), "hooked", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, patience, 100*time.Millisecond, "%s does not end it", f.Fix)
	require.Zero(t, run(t, "addon", "delete", "hooked", "--context", "hub", "--yes").code)

	check := []string{"addon", "asks", "--context", "hub"}
	f = found(t, "OCM0705", check...)
	look, approve, both := strings.Cut(f.Fix, "      and, if it is right, ")
	require.True(t, both, f.Fix)
	require.Contains(t, typeLine(t, look), "signerName: example.com/asks")
	typeLine(t, approve)
	require.NotContains(t, looked(t, check...), "OCM0705")
	require.Zero(t, run(t, "addon", "delete", "asks", "--context", "hub", "--yes").code)
	require.NoError(t, l.client.Resource(requests).Delete(t.Context(), l.request, metav1.DeleteOptions{}))
}

// rolloutFault makes a rollout stop at the first of two clusters.
func rolloutFault(t *testing.T, hub *harness.Cluster) {
	client := hub.Dynamic(t)
	second := registers(t, client, "second", true)
	patched(t, hub, clusters, "", "second", `{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":"other"}}}`)
	require.Zero(t, run(t, "clusterset", "bind", "other", "-n", "default", "--context", "hub").code)
	everywhere := object(placements.GroupVersion().String(), "Placement", "default", "both", map[string]any{
		"spec": map[string]any{"tolerations": []any{map[string]any{"operator": "Exists"}}}})
	_, err := client.Resource(placements).Namespace("default").Create(t.Context(), everywhere, metav1.CreateOptions{})
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "all.yaml"), []byte(strings.ReplaceAll(agent, "namespace: agents", "namespace: nosuch")), 0o600))
	require.Zero(t, run(t, "addon", "create", "rolls", "-f", folder, "--context", "hub").code)
	// No cluster comes to an end, so the rollout stops again soon after the fix: what that does is looked at
	// right after it.
	patched(t, hub, registrations, "", "rolls", `{"spec":{"installStrategy":{"type":"Placements","placements":[{"namespace":"default","name":"both",`+
		`"rolloutStrategy":{"type":"Progressive","progressive":{"maxConcurrency":1,"progressDeadline":"10s"}}}]}}}`)
	check := []string{"addon", "rolls", "--context", "hub"}
	f := found(t, "OCM0712", check...)
	until(t, func() error {
		typeLine(t, f.Fix)
		if _, still := looked(t, check...)["OCM0712"]; still {
			return fmt.Errorf("%s does not mend OCM0712", f.Fix)
		}
		return nil
	})

	require.Zero(t, run(t, "addon", "delete", "rolls", "--context", "hub", "--yes").code)
	require.Zero(t, run(t, "placement", "delete", "default/both", "--context", "hub", "--yes").code)
	require.Zero(t, run(t, "clusterset", "unbind", "other", "-n", "default", "--context", "hub", "--yes").code)
	require.Zero(t, run(t, "cluster", "remove", second.GetName(), "--context", "hub", "--force", "--yes").code)
}
