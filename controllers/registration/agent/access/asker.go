// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
)

const (
	// accessTimeout limits all requests about one kubeconfig.
	accessTimeout = 10 * time.Second
	// Retry is how long to wait before asking again for access that the hub has not granted.
	Retry = 30 * time.Second
)

// Asker asks a hub what a kubeconfig grants, and remembers the answer until the kubeconfig
// changes. It remembers a refusal or a failure only for Retry.
type Asker struct {
	// Clock times the answers; UserAgent is that of the requests.
	Clock     clock.PassiveClock
	UserAgent string
	// Brief limits how long a grant is remembered, too: a token expires.
	Brief bool

	about string
	at    time.Time
	last  Answer
}

// Forget drops the remembered answer, unless it granted everything and grants are not brief.
func (a *Asker) Forget() {
	if a.Brief || !a.last.Granted() {
		a.about = ""
	}
}

// Ask returns what the hub grants to the credential of c; about identifies the credential.
func (a *Asker) Ask(ctx context.Context, about string, c *kubeconfig.Config, rights []Right) Answer {
	fresh := (a.last.Granted() && !a.Brief) || a.Clock.Since(a.at) < Retry
	if a.about == about && fresh {
		return a.last
	}
	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	a.about, a.at, a.last = about, a.Clock.Now(), askHub(ctx, c, a.UserAgent, rights)
	return a.last
}

func askHub(ctx context.Context, c *kubeconfig.Config, userAgent string, rights []Right) Answer {
	link, err := agent.NewLink(c, userAgent)
	if err != nil {
		return Answer{Problem: err.Error()}
	}
	defer link.Close()
	return Ask(ctx, link.Client, rights)
}
