// SPDX-License-Identifier: Apache-2.0

package token

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// bootstrapToken creates a bootstrap token of Kubernetes.
func (o *Options) bootstrapToken(ctx context.Context, r *fleet.Run, result *Result) error {
	secret, err := randomText(o.Random, 16)
	if err != nil {
		return err
	}
	groups := clusterv1.GroupBootstrap
	if o.Cluster != "" {
		groups += "," + clusterv1.GroupPrefixBootstrapCluster + o.Cluster
	}
	u := fleet.Named(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, metav1.NamespaceSystem, "bootstrap-token-"+result.ID)
	u.SetLabels(map[string]string{"app": operatorv1.DefaultClusterManagerName, operatorv1.LabelCreatedByClusterManager: operatorv1.DefaultClusterManagerName})
	u.Object["type"] = "bootstrap.kubernetes.io/token"
	u.Object["data"] = map[string]any{
		"token-id": encode(result.ID), "token-secret": encode(secret), "auth-extra-groups": encode(groups),
		"expiration":                     encode(result.Expires.UTC().Format(time.RFC3339)),
		"usage-bootstrap-authentication": encode("true"), "usage-bootstrap-signing": encode("true"),
		"description": encode("lets a cluster ask to join the hub"),
	}
	return o.store(ctx, u, "making the bootstrap token", result, func(*unstructured.Unstructured) error {
		result.Token = result.ID + "." + secret
		return o.awaitAccepted(ctx, r, result)
	})
}

// awaitAccepted waits until the API server accepts the token; bootstrap tokens may be disabled there.
func (o *Options) awaitAccepted(ctx context.Context, r *fleet.Run, result *Result) error {
	c, err := trust.Connect(result.Endpoint, result.Token)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, fleet.ReachTimeout)
	defer cancel()
	err = await.True(ctx, r.Given.Clock, write.ServedPause, func(ctx context.Context) (bool, error) {
		_, err := WhoAmI(ctx, c)
		return err == nil, err
	})
	if err != nil {
		return fleet.Refuse("bootstrap tokens do not work on "+o.Hub.String(),
			"the API server refuses the new token: its authentication by bootstrap tokens is off",
			AccountToken.On(o.Hub))
	}
	return nil
}

const randomLetters = "abcdefghijklmnopqrstuvwxyz0123456789"

// randomText reads n letters and digits from random, each equally likely.
func randomText(random io.Reader, n int) (string, error) {
	var out strings.Builder
	buffer := make([]byte, 1)
	for out.Len() < n {
		if _, err := io.ReadFull(random, buffer); err != nil {
			return "", fmt.Errorf("reading random bytes: %w", err)
		}
		if int(buffer[0]) < 256-256%len(randomLetters) {
			out.WriteByte(randomLetters[int(buffer[0])%len(randomLetters)])
		}
	}
	return out.String(), nil
}

func encode(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
