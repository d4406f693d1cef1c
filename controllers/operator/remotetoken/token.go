// SPDX-License-Identifier: Apache-2.0

// Package remotetoken gives a process that runs here a token of a single account of another cluster,
// and renews it. The operator requests it with the kubeconfig of an administrator, which it gives
// to nobody.
package remotetoken

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

const (
	// tokenLife is for how long one is requested; it is replaced when a fifth is left.
	tokenLife = 7 * 24 * time.Hour
	// Keys beside the kubeconfig.
	keyExpiration, keyIssued   = "expiration", "issued"
	keyAccount, keyAccountUID  = "serviceaccount_name", "serviceaccount_uid"
	keyAccountNamespace        = "serviceaccount_namespace"
	tokenRequestAPI, tokenKind = "authentication.k8s.io/v1", "TokenRequest"
)

// Token is what a process needs to act as an account of another cluster.
type Token struct {
	// Namespace and Account name the ServiceAccount, UID is its UID.
	Namespace, Account string
	UID                types.UID
	// Kubeconfig names a token beside it.
	Kubeconfig []byte
}

// Left returns how long the token in the data of a Secret is in use; zero or less if it is not the
// one that is wanted.
func (t Token) Left(data map[string][]byte, now time.Time) time.Duration {
	if string(data[clusterv1.SecretKeyKubeconfig]) != string(t.Kubeconfig) || string(data[keyAccountUID]) != string(t.UID) ||
		len(data[addonv1alpha1.SecretKeyToken]) == 0 {
		return 0
	}
	issued, err := time.Parse(time.RFC3339, string(data[keyIssued]))
	ends, err2 := time.Parse(time.RFC3339, string(data[keyExpiration]))
	if err != nil || err2 != nil {
		return 0
	}
	return ends.Add(-ends.Sub(issued) / 5).Sub(now)
}

// Request requests the token from the other cluster and returns a Secret, without a name, that
// holds it.
func (t Token) Request(ctx context.Context, client dynamic.Interface, now time.Time) (*unstructured.Unstructured, error) {
	asked := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": tokenRequestAPI, "kind": tokenKind, "spec": map[string]any{"expirationSeconds": int64(tokenLife.Seconds())},
	}}
	asked.SetName(t.Account)
	answer, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(t.Namespace).
		Create(ctx, asked, metav1.CreateOptions{}, "token")
	if err != nil {
		return nil, fmt.Errorf("requesting a token of ServiceAccount %s/%s on the other cluster: %w", t.Namespace, t.Account, err)
	}
	text, _, _ := unstructured.NestedString(answer.Object, "status", "token")
	ends, _, _ := unstructured.NestedString(answer.Object, "status", "expirationTimestamp")
	if text == "" || ends == "" {
		return nil, errors.New("the other cluster issued no token")
	}
	return request.NewSecret(map[string][]byte{
		clusterv1.SecretKeyKubeconfig: t.Kubeconfig, addonv1alpha1.SecretKeyToken: []byte(text),
		keyIssued: []byte(now.UTC().Format(time.RFC3339)), keyExpiration: []byte(ends),
		keyAccountNamespace: []byte(t.Namespace), keyAccount: []byte(t.Account), keyAccountUID: []byte(t.UID),
	}), nil
}
