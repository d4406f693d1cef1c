// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
)

// Bounds of a token's life. The API server makes none that is shorter.
const (
	// MinTokenTTL is the shortest life of a join token.
	MinTokenTTL = 10 * time.Minute
	// MaxTokenTTL is the longest life of a join token.
	MaxTokenTTL = 366 * 24 * time.Hour
	// DefaultTokenTTL is the life of a join token when none is given.
	DefaultTokenTTL = time.Hour
)

// TokenOptions say which token to make.
type TokenOptions struct {
	Common
	// Hub is where the token shall be valid.
	Hub *Cluster
	// TTL is its life; 0 means DefaultTokenTTL.
	TTL time.Duration
	// Cluster is the only cluster that may join with it; empty means any.
	Cluster string
	// Uses is how many clusters may join with it; 0 means any number.
	Uses int
	// Bootstrap asks for a bootstrap token of Kubernetes (id.secret) instead of a
	// token of the bootstrap service account.
	Bootstrap bool
}

// TokenResult is a new token and how to use it. Its keys in JSON are those that
// scripts of the field know.
type TokenResult struct {
	// Token is the secret; empty in a dry run.
	Token string `json:"hub-token"`
	// Server is the URL of the hub.
	Server string `json:"hub-apiserver"`
	// CAHash pins the hub's CA; empty when the hub's certificate is a public one.
	CAHash string `json:"ca-hash"`
	// Expires is when the token ends.
	Expires metav1.Time `json:"expires"`
	// ID names the token for list and revoke.
	ID string `json:"id"`
	// Cluster is the only cluster it is for, if any.
	Cluster string `json:"cluster,omitempty"`
	// Uses is how many clusters may join with it; 0 means any number.
	Uses int `json:"uses,omitempty"`
	// Items are the objects that were made.
	Items []Change `json:"items"`

	// Endpoint is how agents reach the hub.
	Endpoint Endpoint `json:"-"`
}

// Kubeconfig returns the kubeconfig that an agent would join with.
func (t TokenResult) Kubeconfig() ([]byte, error) { return bootstrapKubeconfig(t.Endpoint, t.Token) }

// Token makes a token that lets clusters ask the hub to be joined. Tokens that
// have expired are cleared away.
func Token(ctx context.Context, o TokenOptions) (TokenResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	if o.TTL == 0 {
		o.TTL = DefaultTokenTTL
	}
	if err := o.check(); err != nil {
		return TokenResult{}, err
	}
	endpoint, hash, err := hubEndpoint(ctx, o.Hub)
	if err != nil {
		return TokenResult{}, err
	}
	result := TokenResult{Server: endpoint.Server, CAHash: hash, Cluster: o.Cluster, Uses: o.Uses, Endpoint: endpoint,
		Expires: metav1.NewTime(r.now().Add(o.TTL).UTC().Truncate(time.Second))}
	if result.ID, err = randomText(o.Random, 6); err != nil {
		return TokenResult{}, err
	}
	if result.Items, err = o.mayJoin(ctx, r); err != nil {
		return TokenResult{}, err
	}
	make := o.serviceAccountToken
	if o.Bootstrap {
		make = o.bootstrapToken
	}
	if err := make(ctx, r, &result); err != nil {
		return TokenResult{}, err
	}
	if !o.reads() {
		clearExpired(ctx, o.Hub, r.now())
	}
	return result, nil
}

func (o *TokenOptions) check() error {
	if o.Uses != 0 {
		if err := CheckUses(o.Uses, o.Bootstrap); err != nil {
			return err
		}
	}
	return CheckToken(o.TTL, o.Cluster)
}

// CheckToken tells why there can be no token that lives for ttl and is for a
// cluster; an empty cluster means any. It asks no server.
func CheckToken(ttl time.Duration, cluster string) error {
	if ttl < MinTokenTTL || ttl > MaxTokenTTL {
		return usage(fmt.Sprintf("a token cannot live for %s", ttl), fmt.Sprintf("it lives for %.0f minutes at least and for %.0f days at most",
			MinTokenTTL.Minutes(), MaxTokenTTL.Hours()/24), "for example --ttl 1h")
	}
	if cluster != "" {
		return CheckName(cluster)
	}
	return nil
}

// serviceAccountToken makes a token of the bootstrap service account that ends
// with a Secret of its own.
func (o *TokenOptions) serviceAccountToken(ctx context.Context, _ *run, result *TokenResult) error {
	ns := operatorv1.NamespaceOperator
	secret := o.tokenSecret(result)
	if o.reads() {
		result.Items = append(result.Items, Change{Object: redact(secret), Action: Created})
		return nil
	}
	stored, err := o.Hub.Client.Resource(secrets).Namespace(ns).Create(ctx, secret, metav1.CreateOptions{FieldManager: FieldManager})
	if err != nil {
		return explain("making the token's secret", o.Hub, err)
	}
	if err := o.requestToken(ctx, stored, result); err != nil {
		_ = o.Hub.Client.Resource(secrets).Namespace(ns).Delete(context.WithoutCancel(ctx), stored.GetName(), metav1.DeleteOptions{})
		var plain *Error
		if errors.As(err, &plain) {
			return err
		}
		return explain("requesting a token", o.Hub, err)
	}
	result.Items = append(result.Items, Change{Object: reference(stored), Action: Created})
	return nil
}

func (o *TokenOptions) tokenSecret(result *TokenResult) *unstructured.Unstructured {
	u := named(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, operatorv1.NamespaceOperator, "join-token-"+result.ID)
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

// requestToken asks for the token and writes its credential id into the Secret,
// by which requests made with it are known again.
func (o *TokenOptions) requestToken(ctx context.Context, secret *unstructured.Unstructured, result *TokenResult) error {
	request := named(schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest"}, secret.GetNamespace(), clusterv1.BootstrapServiceAccount)
	request.Object["spec"] = map[string]any{
		"expirationSeconds": int64(o.TTL / time.Second),
		"boundObjectRef":    map[string]any{"apiVersion": "v1", "kind": "Secret", "name": secret.GetName(), "uid": string(secret.GetUID())},
	}
	answer, err := o.Hub.Client.Resource(serviceAccounts).Namespace(secret.GetNamespace()).Create(ctx, request, metav1.CreateOptions{}, "token")
	if err != nil {
		return err
	}
	token, _, _ := unstructured.NestedString(answer.Object, "status", "token")
	id, err := credentialID(token)
	if err != nil {
		return err
	}
	if id == "" && o.Uses != 0 {
		return refused("a token for "+strconv.Itoa(o.Uses)+" clusters cannot be made on "+o.Hub.String(), "its API server does not tell which token a request came with, so the hub could not count",
			"kubectl ocm hub token create --cluster NAME --use-bootstrap-token"+o.Hub.flag()+"      (one token for each cluster)")
	}
	if id == "" && o.Cluster != "" {
		return refused("a token for one cluster cannot be made on "+o.Hub.String(), "its API server does not tell which token a request came with, so the hub could not hold the token to the cluster",
			fmt.Sprintf("kubectl ocm hub token create --cluster %s --use-bootstrap-token%s", o.Cluster, o.Hub.flag()))
	}
	result.Expires = ends(answer, result.Expires)
	change := secret.DeepCopy()
	data := change.Object["data"].(map[string]any)
	data[clusterv1.JoinTokenKeyCredentialID] = encode(id)
	data[clusterv1.JoinTokenKeyExpiration] = encode(result.Expires.UTC().Format(time.RFC3339))
	if _, err := o.Hub.Client.Resource(secrets).Namespace(secret.GetNamespace()).Update(ctx, change, metav1.UpdateOptions{FieldManager: FieldManager}); err != nil {
		return err
	}
	result.Token = token
	return nil
}

// ends is when the API server says that a token ends: it may be set to make none
// that lives for as long as was asked for, and does not tell otherwise.
func ends(request *unstructured.Unstructured, wanted metav1.Time) metav1.Time {
	text, _, _ := unstructured.NestedString(request.Object, "status", "expirationTimestamp")
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.Before(wanted.Time) {
		return metav1.NewTime(at.UTC())
	}
	return wanted
}

// claims are what a service account token says of itself.
type claims struct {
	ID        string    `json:"jti"`
	Issuer    string    `json:"iss"`
	Audiences audiences `json:"aud"`
	Expires   float64   `json:"exp"`
}

// audiences of a token: one, or a list.
type audiences []string

// UnmarshalJSON reads both forms.
func (a *audiences) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(a))
}

// claimsOf reads a token without verifying it.
func claimsOf(token string) (claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, errors.New("the API server's token is no JWT")
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims{}, errors.New("the API server's token cannot be read")
	}
	var out claims
	if err := json.Unmarshal(raw, &out); err != nil {
		return claims{}, errors.New("the claims of the API server's token cannot be read")
	}
	return out, nil
}

// credentialID reads from a service account token what the API server will call
// it. Servers before 1.30 do not; then there is none.
func credentialID(token string) (string, error) {
	said, err := claimsOf(token)
	if err != nil || said.ID == "" {
		return "", err
	}
	return "JTI=" + said.ID, nil
}

// bootstrapToken makes a bootstrap token of Kubernetes.
func (o *TokenOptions) bootstrapToken(ctx context.Context, r *run, result *TokenResult) error {
	secret, err := randomText(o.Random, 16)
	if err != nil {
		return err
	}
	groups := clusterv1.GroupBootstrap
	if o.Cluster != "" {
		groups += "," + clusterv1.GroupPrefixBootstrapCluster + o.Cluster
	}
	u := named(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, metav1.NamespaceSystem, "bootstrap-token-"+result.ID)
	u.SetLabels(map[string]string{"app": operatorv1.DefaultClusterManagerName, operatorv1.LabelCreatedByClusterManager: operatorv1.DefaultClusterManagerName})
	u.Object["type"] = "bootstrap.kubernetes.io/token"
	u.Object["data"] = map[string]any{
		"token-id": encode(result.ID), "token-secret": encode(secret), "auth-extra-groups": encode(groups),
		"expiration":                     encode(result.Expires.UTC().Format(time.RFC3339)),
		"usage-bootstrap-authentication": encode("true"), "usage-bootstrap-signing": encode("true"),
		"description": encode("lets a cluster ask to join the hub"),
	}
	if o.reads() {
		result.Items = append(result.Items, Change{Object: redact(u), Action: Created})
		return nil
	}
	client := o.Hub.Client.Resource(secrets).Namespace(u.GetNamespace())
	if _, err := client.Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager}); err != nil {
		return explain("making the bootstrap token", o.Hub, err)
	}
	result.Token = result.ID + "." + secret
	if err := o.known(ctx, r, result); err != nil {
		_ = client.Delete(context.WithoutCancel(ctx), u.GetName(), metav1.DeleteOptions{})
		result.Token = ""
		return err
	}
	result.Items = append(result.Items, Change{Object: reference(u), Action: Created})
	return nil
}

// known waits until the API server lets the token in; it may be told to take no
// bootstrap tokens at all.
func (o *TokenOptions) known(ctx context.Context, r *run, result *TokenResult) error {
	c, err := connectWith(result.Endpoint, result.Token)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	err = await.True(ctx, r.common.Clock, servedPause, func(ctx context.Context) (bool, error) {
		_, err := whoAmI(ctx, c)
		return err == nil, err
	})
	if err != nil {
		return refused("bootstrap tokens do not work on "+o.Hub.String(), "the API server refuses the new token: it needs --enable-bootstrap-token-auth",
			"kubectl ocm hub token"+o.Hub.flag()+"      (a token of the bootstrap service account)")
	}
	return nil
}

// tokenPattern is the form of a bootstrap token.
var tokenPattern = regexp.MustCompile(`^([a-z0-9]{6})\.([a-z0-9]{16})$`)

// bootstrapToken splits a bootstrap token into id and secret.
func bootstrapToken(token string) (id, secret string, ok bool) {
	m := tokenPattern.FindStringSubmatch(token)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

const randomLetters = "abcdefghijklmnopqrstuvwxyz0123456789"

// randomText reads n letters and digits from random, all equally likely.
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
