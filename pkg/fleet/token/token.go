// SPDX-License-Identifier: Apache-2.0

package token

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
)

// Bounds of a token's lifetime. The API server issues none with a shorter one.
const (
	// minTTL is the shortest lifetime of a join token.
	minTTL = 10 * time.Minute
	// maxTTL is the longest lifetime of a join token.
	maxTTL = 366 * 24 * time.Hour
	// DefaultTTL is the lifetime of a join token when none is given.
	DefaultTTL = time.Hour
)

// Options say which token to create.
type Options struct {
	fleet.Common
	// Hub is where the token is to be valid.
	Hub *fleet.Cluster
	// TTL is its lifetime; 0 means DefaultTTL.
	TTL time.Duration
	// Cluster is the only cluster that may join with it; empty means any.
	Cluster string
	// Uses is how many clusters may join with it; 0 means any number.
	Uses int
	// Bootstrap asks for a bootstrap token of Kubernetes (id.secret) instead of a
	// token of the bootstrap service account.
	Bootstrap bool
}

// Result is a new token and how to use it. Its JSON keys are those that existing scripts for
// Open Cluster Management expect.
type Result struct {
	// Token is the secret; empty in a dry run.
	Token string `json:"hub-token"`
	// Server is the URL of the hub.
	Server string `json:"hub-apiserver"`
	// CAHash pins the hub's CA; empty when the hub's certificate is a public one.
	CAHash string `json:"ca-hash"`
	// Expires is when the token expires.
	Expires metav1.Time `json:"expires"`
	// ID names the token for list and revoke.
	ID string `json:"id"`
	// Cluster is the only cluster it is for, if any.
	Cluster string `json:"cluster,omitempty"`
	// Uses is how many clusters may join with it; 0 means any number.
	Uses int `json:"uses,omitempty"`
	// Items are the objects that were created.
	Items []fleet.Change `json:"items"`

	// Endpoint is how agents reach the hub.
	Endpoint trust.Endpoint `json:"-"`
}

// Kubeconfig returns the kubeconfig that an agent would join with.
func (t Result) Kubeconfig() ([]byte, error) { return trust.BootstrapKubeconfig(t.Endpoint, t.Token) }

// Create creates a token with which clusters may ask the hub to join. It also deletes expired
// tokens.
func Create(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	o.TTL = cmp.Or(o.TTL, DefaultTTL)
	if o.Uses != 0 {
		if err := CheckUses(o.Uses, o.Bootstrap); err != nil {
			return Result{}, err
		}
	}
	if err := Check(o.TTL, o.Cluster); err != nil {
		return Result{}, err
	}
	endpoint, hash, err := trust.OfHub(ctx, o.Hub)
	if err != nil {
		return Result{}, err
	}
	result := Result{Server: endpoint.Server, CAHash: hash, Cluster: o.Cluster, Uses: o.Uses, Endpoint: endpoint,
		Expires: metav1.NewTime(r.Now().Add(o.TTL).UTC().Truncate(time.Second))}
	if result.ID, err = randomText(o.Random, 6); err != nil {
		return Result{}, err
	}
	if result.Items, err = o.restoreJoinRights(ctx, r); err != nil {
		return Result{}, err
	}
	make := o.serviceAccountToken
	if o.Bootstrap {
		make = o.bootstrapToken
	}
	if err := make(ctx, r, &result); err != nil {
		return Result{}, err
	}
	if !o.Reads() {
		clearExpired(ctx, o.Hub, r.Now())
	}
	return result, nil
}

// Check returns why there can be no token with this lifetime and cluster; an empty cluster
// means any. It sends no request.
func Check(ttl time.Duration, cluster string) error {
	if ttl < minTTL || ttl > maxTTL {
		return fleet.Misuse(fmt.Sprintf("a token cannot be valid for %s", ttl), fmt.Sprintf("its lifetime is at least %.0f minutes and at most %.0f days",
			minTTL.Minutes(), maxTTL.Hours()/24), ExampleTTL.With())
	}
	if cluster != "" {
		return naming.Check(cluster)
	}
	return nil
}

// serviceAccountToken creates a token of the bootstrap service account that is bound to a
// Secret of its own.
func (o *Options) serviceAccountToken(ctx context.Context, _ *fleet.Run, result *Result) error {
	return o.store(ctx, o.tokenSecret(result), "making the token's secret", result, func(stored *unstructured.Unstructured) error {
		return fleet.Explain("requesting a token", o.Hub, o.requestToken(ctx, stored, result))
	})
}

func (o *Options) tokenSecret(result *Result) *unstructured.Unstructured {
	u := fleet.Named(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, operatorv1.NamespaceOperator, "join-token-"+result.ID)
	u.SetLabels(map[string]string{
		clusterv1.LabelJoinToken:                result.ID,
		operatorv1.LabelCreatedByClusterManager: operatorv1.DefaultClusterManagerName,
	})
	u.Object["type"] = "Opaque"
	data := map[string]any{
		clusterv1.JoinTokenKeyExpiration: encode(result.Expires.UTC().Format(time.RFC3339)),
		clusterv1.JoinTokenKeyCluster:    encode(o.Cluster),
	}
	if o.Uses != 0 {
		data[clusterv1.JoinTokenKeyUses] = encode(strconv.Itoa(o.Uses))
	}
	u.Object["data"] = data
	return u
}

// store creates the Secret of a token and makes the token usable; if that fails, it deletes the
// Secret.
func (o *Options) store(ctx context.Context, secret *unstructured.Unstructured, doing string, result *Result,
	use func(*unstructured.Unstructured) error) error {
	if o.Reads() {
		result.Items = append(result.Items, fleet.Change{Object: fleet.Redact(secret), Action: fleet.Created})
		return nil
	}
	client := o.Hub.Client.Resource(fleet.Secrets).Namespace(secret.GetNamespace())
	stored, err := client.Create(ctx, secret, metav1.CreateOptions{FieldManager: fleet.FieldManager})
	if err != nil {
		return fleet.Explain(doing, o.Hub, err)
	}
	if err := use(stored); err != nil {
		_ = client.Delete(context.WithoutCancel(ctx), stored.GetName(), metav1.DeleteOptions{})
		return err
	}
	result.Items = append(result.Items, fleet.Change{Object: fleet.Reference(stored), Action: fleet.Created})
	return nil
}

// requestToken requests the token and writes its credential id into the Secret, by which
// requests made with it are recognized.
func (o *Options) requestToken(ctx context.Context, secret *unstructured.Unstructured, result *Result) error {
	request := fleet.Named(schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"}, secret.GetNamespace(),
		clusterv1.BootstrapServiceAccount)
	request.Object["spec"] = map[string]any{
		"expirationSeconds": int64(o.TTL / time.Second),
		"boundObjectRef":    map[string]any{"apiVersion": "v1", "kind": "Secret", "name": secret.GetName(), "uid": string(secret.GetUID())},
	}
	answer, err := o.Hub.Client.Resource(fleet.ServiceAccounts).Namespace(secret.GetNamespace()).Create(ctx, request, metav1.CreateOptions{}, "token")
	if err != nil {
		return err
	}
	token, _, _ := unstructured.NestedString(answer.Object, "status", "token")
	id, err := credentialID(token)
	if err != nil {
		return err
	}
	if id == "" && o.Uses != 0 {
		return fleet.Refuse("a token for "+strconv.Itoa(o.Uses)+" clusters cannot be made on "+o.Hub.String(),
			"its API server does not record which token a request came with, so the hub could not count",
			BootstrapTokens.On(o.Hub))
	}
	if id == "" && o.Cluster != "" {
		return fleet.Refuse("a token for one cluster cannot be made on "+o.Hub.String(),
			"its API server does not record which token a request came with, so the hub could not hold the token to the cluster",
			BootstrapToken.On(o.Hub, "cluster", o.Cluster))
	}
	result.Expires = expiryOf(answer, result.Expires)
	change := secret.DeepCopy()
	data := change.Object["data"].(map[string]any)
	data[clusterv1.JoinTokenKeyCredentialID] = encode(id)
	data[clusterv1.JoinTokenKeyExpiration] = encode(result.Expires.UTC().Format(time.RFC3339))
	result.Token = token
	client := o.Hub.Client.Resource(fleet.Secrets).Namespace(secret.GetNamespace())
	_, err = client.Update(ctx, change, metav1.UpdateOptions{FieldManager: fleet.FieldManager})
	return err
}

// expiryOf returns when the token expires according to the API server, which may be configured to
// issue shorter-lived tokens than requested and reports it only there.
func expiryOf(request *unstructured.Unstructured, wanted metav1.Time) metav1.Time {
	text, _, _ := unstructured.NestedString(request.Object, "status", "expirationTimestamp")
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.Before(wanted.Time) {
		return metav1.NewTime(at.UTC())
	}
	return wanted
}

// CheckUses returns why there can be no token for a number of clusters. It sends no request.
func CheckUses(uses int, bootstrap bool) error {
	if err := identity.CheckUses(uses); err != nil {
		return fleet.Misuse(fmt.Sprintf("a token cannot be for %d clusters", uses), err.Error(), ExampleUses.With())
	}
	if bootstrap {
		return fleet.Misuse("a bootstrap token cannot be for a number of clusters", "it is a Secret of Kubernetes, which cannot hold a limit",
			OneCluster.With())
	}
	return nil
}
