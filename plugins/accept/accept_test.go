// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
)

func TestARequestForANameThatIsHeldSaysWhatGivesIt(t *testing.T) {
	requests := []request.Request{{Reason: "used up"}, {Reason: "both are running", Holder: "a"}}
	adviseReplace(requests)
	require.Equal(t, "used up", requests[0].Reason)
	require.Equal(t, "both are running; --replace gives it the name", requests[1].Reason)
}
