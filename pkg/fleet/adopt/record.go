// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

const (
	// recordName is the ConfigMap, beside the operator, with what adoption changes.
	recordName = "hub-adoption"
	// recordKey holds the objects, as compressed JSON.
	recordKey = "objects.json.gz"
	// recordOperator holds the UID of the operator's Deployment.
	recordOperator = "operator"
	// recordLimit bounds the record: a ConfigMap has 1 MiB. readLimit bounds what is unpacked.
	recordLimit = 900 << 10
	readLimit   = 32 << 20
)

// record is what there was before the adoption.
type record struct {
	// live is the ConfigMap that holds it.
	live *unstructured.Unstructured
	// operator is the UID of the operator's Deployment; empty when there was none.
	operator string
	// objects are the objects that adoption changes, in the order to put them back.
	objects []*unstructured.Unstructured
}

// find returns an object of the record; nil when there was none.
func (r *record) find(u *unstructured.Unstructured) *unstructured.Unstructured {
	for _, o := range r.objects {
		if key(o) == key(u) {
			return o
		}
	}
	return nil
}

// key identifies an object whatever its version is.
func key(u *unstructured.Unstructured) string { return fleet.Describe(u) }

// readRecord returns the record on the hub; nil when there is none.
func readRecord(ctx context.Context, c *fleet.Cluster) (*record, error) {
	live, err := c.Client.Resource(fleet.ConfigMaps).Namespace(operatorv1.NamespaceOperator).Get(ctx, recordName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fleet.Explain("reading the record of the adoption", c, err)
	}
	objects, err := unpack(live)
	if err != nil {
		return nil, fleet.Refuse("the record of the adoption cannot be read", "configmap "+operatorv1.NamespaceOperator+"/"+recordName+": "+err.Error(),
			fleet.Advice("restore that ConfigMap from a backup"))
	}
	operator, _, _ := unstructured.NestedString(live.Object, "data", recordOperator)
	return &record{live: live, operator: operator, objects: objects}, nil
}

// unpack reads the objects of a record.
func unpack(live *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	text, _, _ := unstructured.NestedString(live.Object, "binaryData", recordKey)
	packed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(z, readLimit+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > readLimit {
		return nil, errors.New("it is too large")
	}
	var items []map[string]any
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, item := range items {
		out = append(out, &unstructured.Unstructured{Object: item})
	}
	return out, nil
}

// pack returns the ConfigMap with a record of live objects. Secrets are never in it.
func pack(operator string, objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var items []map[string]any
	for _, u := range objects {
		if u.GetKind() == "Secret" {
			continue
		}
		items = append(items, restorable(u).Object)
	}
	raw, err := json.Marshal(items)
	if err != nil {
		return nil, fmt.Errorf("encoding the record: %w", err)
	}
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level exists
	if _, err := z.Write(raw); err != nil {
		return nil, fmt.Errorf("compressing the record: %w", err)
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("compressing the record: %w", err)
	}
	if packed.Len() > recordLimit {
		return nil, fleet.Refuse("the record of the way back does not fit into a ConfigMap", fmt.Sprintf("it has %d KiB", packed.Len()>>10),
			fleet.Advice("shorten the annotations of the hub's definitions and Deployments"))
	}
	out := fleet.Named(coreKind.WithKind("ConfigMap"), operatorv1.NamespaceOperator, recordName)
	out.SetLabels(map[string]string{operatorv1.LabelCreatedByClusterManager: manager})
	out.Object["data"] = map[string]any{recordOperator: operator}
	out.Object["binaryData"] = map[string]any{recordKey: base64.StdEncoding.EncodeToString(packed.Bytes())}
	return out, nil
}

// restorable returns what is needed to make an object again. Its owners may be gone by then, and
// addresses of Services may be taken.
func restorable(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := write.Clean(u)
	out.SetOwnerReferences(nil)
	if out.GetKind() == "Service" {
		for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
			unstructured.RemoveNestedField(out.Object, "spec", field)
		}
	}
	return out
}
