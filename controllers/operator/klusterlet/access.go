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

// accessTimeout limits all requests about one kubeconfig.
const accessTimeout = 10 * time.Second

// asker asks a hub what a kubeconfig grants, and remembers the answer until the kubeconfig
// changes. It remembers a refusal or a failure only for unauthorizedRetry.
type asker struct {
	clock     clock.PassiveClock
	userAgent string
	// brief limits how long a grant is remembered, too: a token expires.
	brief bool

	about string
	at    time.Time
	last  access.Answer
}

// forget drops the remembered answer, unless it granted everything and grants are not brief.
func (a *asker) forget() {
	if a.brief || !a.last.Granted() {
		a.about = ""
	}
}

// ask returns what the hub grants to the credential of c; about identifies the credential.
func (a *asker) ask(ctx context.Context, about string, c *kubeconfig.Config, rights []access.Right) access.Answer {
	fresh := (a.last.Granted() && !a.brief) || a.clock.Since(a.at) < unauthorizedRetry
	if a.about == about && fresh {
		return a.last
	}
	ctx, cancel := context.WithTimeout(ctx, accessTimeout)
	defer cancel()
	a.about, a.at, a.last = about, a.clock.Now(), askHub(ctx, c, a.userAgent, rights)
	return a.last
}

func askHub(ctx context.Context, c *kubeconfig.Config, userAgent string, rights []access.Right) access.Answer {
	link, err := agent.NewLink(c, userAgent)
	if err != nil {
		return access.Answer{Problem: err.Error()}
	}
	defer link.Close()
	return access.Ask(ctx, link.Client, rights)
}
