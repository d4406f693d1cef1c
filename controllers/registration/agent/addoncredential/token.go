// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

const (
	// maxToken bounds a token that is read, in bytes.
	maxToken = 64 << 10
	// maxUID bounds the UID of a ServiceAccount.
	maxUID = 64
	// refreshFrom is the part of a token's life after which it is refreshed.
	refreshFrom = 0.8
)

// parseTokenMessage returns the UID of the ServiceAccount of an add-on from the
// message of condition TokenInfrastructureReady. The whole message is compared:
// one for another ServiceAccount is refused.
func parseTokenMessage(message, cluster, addOn string) (types.UID, error) {
	prefix := "ServiceAccount " + cluster + "/" + addOn + addonv1alpha1.ServiceAccountSuffix + " (UID: "
	rest, ok := strings.CutPrefix(message, prefix)
	if !ok {
		return "", fmt.Errorf("its message does not begin with %q", prefix)
	}
	uid, end, ok := strings.Cut(rest, ")")
	if !ok || end != " is ready" {
		return "", errors.New(`its message does not end with ") is ready"`)
	}
	odd := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-'
	}
	if uid == "" || len(uid) > maxUID || strings.ContainsFunc(uid, odd) {
		return "", errors.New("the UID in its message is none")
	}
	return types.UID(uid), nil
}

// infrastructureOf is the ServiceAccount that the hub made for the tokens of an
// add-on, or what is waited for.
func infrastructureOf(a *addonv1alpha1.ManagedClusterAddOn) (types.UID, string) {
	const kind = addonv1alpha1.ConditionTokenInfrastructureReady
	c := apimeta.FindStatusCondition(a.Status.Conditions, kind)
	switch {
	case c == nil:
		return "", "waiting for the hub to make the ServiceAccount of the add-on (condition " + kind + ")"
	case !apimeta.IsStatusConditionTrue(a.Status.Conditions, kind):
		return "", fmt.Sprintf("the hub did not make the ServiceAccount of the add-on: condition %s: %s", kind, c.Message)
	}
	uid, err := parseTokenMessage(c.Message, a.Namespace, a.Name)
	if err != nil {
		return "", fmt.Sprintf("condition %s is not understood: %v", kind, err)
	}
	return uid, ""
}

// claims is the part of a token of a ServiceAccount that is read. Nothing is
// verified: the API server that gave the token did.
type claims struct {
	Issued     int64 `json:"iat"`
	Expires    int64 `json:"exp"`
	Kubernetes struct {
		Namespace      string `json:"namespace"`
		ServiceAccount struct {
			Name string    `json:"name"`
			UID  types.UID `json:"uid"`
		} `json:"serviceaccount"`
	} `json:"kubernetes.io"`
}

// readToken tells how long a token is good, and whose it is. Its errors never
// show the token.
func readToken(raw []byte) (Life, error) {
	parts := strings.Split(string(raw[:min(len(raw), maxToken)]), ".")
	if len(raw) > maxToken || len(parts) != 3 {
		return Life{}, errors.New("the token is not readable")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return Life{}, errors.New("the token is not readable")
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return Life{}, errors.New("the token is not readable")
	}
	from, until := time.Unix(c.Issued, 0), time.Unix(c.Expires, 0)
	switch {
	case c.Issued <= 0 || c.Expires <= c.Issued || c.Expires > maxUnix:
		return Life{}, errors.New("the token does not say how long it is good")
	case c.Kubernetes.ServiceAccount.UID == "":
		return Life{}, errors.New("the token is not of a ServiceAccount")
	}
	return Life{
		Until: until, Renew: from.Add(time.Duration(float64(until.Sub(from)) * refreshFrom)), UID: c.Kubernetes.ServiceAccount.UID,
		Owner: c.Kubernetes.Namespace + "/" + c.Kubernetes.ServiceAccount.Name,
	}, nil
}

// maxUnix is the last second of the year 9999, the last that RFC 3339 can name.
const maxUnix = 253402300799
