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
	// maxToken bounds a token to parse, in bytes.
	maxToken = 64 << 10
	// maxUID bounds the UID of a ServiceAccount.
	maxUID = 64
	// refreshFrom is the part of a token's lifetime after which it is refreshed.
	refreshFrom = 0.8
)

// parseTokenMessage extracts the UID of an add-on's ServiceAccount from the message of
// condition TokenInfrastructureReady. The whole message is compared: one for another
// ServiceAccount is rejected.
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
		return "", errors.New("the UID in its message is not valid")
	}
	return types.UID(uid), nil
}

// infrastructureOf returns the ServiceAccount created by the hub for an add-on's tokens, or
// why there is none.
func infrastructureOf(a *addonv1alpha1.ManagedClusterAddOn) (types.UID, string) {
	const kind = addonv1alpha1.ConditionTokenInfrastructureReady
	c := apimeta.FindStatusCondition(a.Status.Conditions, kind)
	switch {
	case c == nil:
		return "", "waiting for the hub to create the ServiceAccount of the add-on (condition " + kind + ")"
	case !apimeta.IsStatusConditionTrue(a.Status.Conditions, kind):
		return "", fmt.Sprintf("the hub did not create the ServiceAccount of the add-on: condition %s: %s", kind, c.Message)
	}
	uid, err := parseTokenMessage(c.Message, a.Namespace, a.Name)
	if err != nil {
		return "", fmt.Sprintf("condition %s is not understood: %v", kind, err)
	}
	return uid, ""
}

// claims is the part of a ServiceAccount token that is read. Nothing is verified: the token
// comes straight from the API server that issued it.
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

// readToken returns a token's lifetime and ServiceAccount, or a Problem, which never shows the
// token.
func readToken(raw []byte) Life {
	parts := strings.Split(string(raw[:min(len(raw), maxToken)]), ".")
	if len(raw) > maxToken || len(parts) != 3 {
		return Life{Problem: "the token is not readable"}
	}
	var c claims
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return Life{Problem: "the token is not readable"}
	}
	from, until := time.Unix(c.Issued, 0), time.Unix(c.Expires, 0)
	switch {
	case c.Issued <= 0 || c.Expires <= c.Issued || c.Expires > maxUnix:
		return Life{Problem: "the token does not say how long it is valid"}
	case c.Kubernetes.ServiceAccount.UID == "":
		return Life{Problem: "the token does not belong to a ServiceAccount"}
	}
	return Life{
		Until: until, Renew: from.Add(time.Duration(float64(until.Sub(from)) * refreshFrom)), UID: c.Kubernetes.ServiceAccount.UID,
		Owner: c.Kubernetes.Namespace + "/" + c.Kubernetes.ServiceAccount.Name,
	}
}

// maxUnix is the last second of the year 9999, the last that RFC 3339 can express.
const maxUnix = 253402300799
