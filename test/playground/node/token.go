// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
)

// tokens keeps the ServiceAccount tokens of one pod and renews each after four fifths of
// its lifetime, as kubelet does.
type tokens struct {
	core  typedcorev1.CoreV1Interface
	clock clock.PassiveClock
	held  map[string]heldToken
}

type heldToken struct {
	token []byte
	renew time.Time
}

// get returns a token bound to the pod, a stored one while it is fresh.
func (t *tokens) get(ctx context.Context, pod *corev1.Pod, audience string, seconds int64) ([]byte, error) {
	key := fmt.Sprintf("%s/%d", audience, seconds)
	now := t.clock.Now()
	if held, ok := t.held[key]; ok && now.Before(held.renew) {
		return held.token, nil
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	answer, err := t.core.ServiceAccounts(pod.Namespace).
		CreateToken(ctx, pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking for a token of serviceaccount %s: %w", pod.Spec.ServiceAccountName, err)
	}
	life := answer.Status.ExpirationTimestamp.Sub(now)
	t.held[key] = heldToken{token: []byte(answer.Status.Token), renew: now.Add(life * 4 / 5)}
	return t.held[key].token, nil
}

// nextRenewal returns when the first of the tokens has to be renewed; zero if there is
// none.
func (t *tokens) nextRenewal() time.Time {
	var first time.Time
	for _, held := range t.held {
		if first.IsZero() || held.renew.Before(first) {
			first = held.renew
		}
	}
	return first
}
