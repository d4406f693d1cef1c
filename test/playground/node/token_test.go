// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
)

// A real token lives for ten minutes at least, so only this test covers its renewal.
func TestATokenIsRenewedWhenFourFifthsOfItsLifeAreOver(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(began)
	client := fake.NewClientset()
	asked := 0
	client.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, runtime.Object, error) {
		require.Equal(t, "token", a.GetSubresource())
		request := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest)
		require.Equal(t, "uid", string(request.Spec.BoundObjectRef.UID))
		asked++
		request.Status.Token = fmt.Sprintf("token %d for %v", asked, request.Spec.Audiences)
		request.Status.ExpirationTimestamp = metav1.NewTime(clock.Now().Add(time.Duration(*request.Spec.ExpirationSeconds) * time.Second))
		return true, request, nil
	})
	tokens := &tokens{core: client.CoreV1(), clock: clock, held: map[string]heldToken{}}
	require.True(t, tokens.nextRenewal().IsZero())
	get := func(audience string, seconds int64) string {
		token, err := tokens.get(t.Context(), aPod(), audience, seconds)
		require.NoError(t, err)
		return string(token)
	}
	require.Equal(t, "token 1 for []", get("", 1000))
	require.Equal(t, "token 2 for [vault]", get("vault", 2000))
	require.Equal(t, began.Add(800*time.Second), tokens.nextRenewal())
	clock.SetTime(began.Add(799 * time.Second))
	require.Equal(t, "token 1 for []", get("", 1000))
	clock.SetTime(began.Add(800 * time.Second))
	require.Equal(t, "token 3 for []", get("", 1000))
	require.Equal(t, "token 2 for [vault]", get("vault", 2000))
	require.Equal(t, began.Add(1600*time.Second), tokens.nextRenewal())
}
