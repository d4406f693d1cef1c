// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/access"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
)

// accessTimeout bounds all questions about one kubeconfig.
const accessTimeout = 10 * time.Second

// asker asks a hub about a kubeconfig, and remembers the answer until the
// kubeconfig changes; a refusal or a failure only for a while.
type asker struct {
	clock     clock.PassiveClock
	userAgent string
	// brief remembers a consent only for a while, too: a token expires.
	brief bool

	about string
	at    time.Time
	last  access.Answer
}

// forget makes the next question go to the hub, unless all was granted and a consent
// lasts.
func (a *asker) forget() {
	if a.brief || !a.last.Granted() {
		a.about = ""
	}
}

// ask tells what the hub grants to the credential of c; about identifies it.
func (a *asker) ask(ctx context.Context, about string, c *kubeconfig.Config, rights []access.Right) access.Answer {
	fresh := (a.last.Granted() && !a.brief) || a.clock.Since(a.at) < unauthorizedRetry
	if a.about == about && fresh {
		return a.last
	}
	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	a.about, a.at, a.last = about, a.clock.Now(), question(ctx, c, a.userAgent, rights)
	return a.last
}

func question(ctx context.Context, c *kubeconfig.Config, userAgent string, rights []access.Right) access.Answer {
	link, err := agent.NewLink(c, userAgent)
	if err != nil {
		return access.Answer{Problem: err.Error()}
	}
	defer link.Close()
	return access.Ask(ctx, link.Client, rights)
}
