// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"reflect"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
)

// Session is the period in which an agent has access to one hub under one identity. Renewing
// the certificate does not end it.
type Session struct {
	// Link is the connection with the agent's own certificate.
	Link *Link
	// Identity is the agent's identity on this hub.
	Identity Identity
	// Endpoint is the hub's address and trust anchor, without credentials.
	Endpoint *kubeconfig.Config
	// HubID identifies the hub independently of its location: a new address or certificate
	// authority of the hub that issued the certificate does not change it.
	HubID string
	// HubHash is the hex SHA-256 of the hub's server URL.
	HubHash string
	// Settings are those the session was started with (Settings.Serving).
	Settings Settings
}

// Access is what a session needs.
type Access struct {
	// Config is the hub with the agent's certificate.
	Config *kubeconfig.Config
	// Identity, HubID and Settings are those of the session.
	Identity Identity
	HubID    string
	Settings Settings
}

// Sessions runs one session at a time. It is for one goroutine only.
type Sessions struct {
	// UserAgent identifies the process to the hub.
	UserAgent string
	// Serve runs while there is access, until its context ends.
	Serve func(context.Context, Session)
	// Ending, unless nil, is called before a session ends.
	Ending func()

	current *Session
	config  *kubeconfig.Config
	end     func()
}

// Current returns the running session; nil if there is none.
func (s *Sessions) Current() *Session { return s.current }

// Keep keeps a session with this access running: the same one as long as the hub, the identity
// and the settings that affect it are unchanged, with the newest certificate.
func (s *Sessions) Keep(ctx context.Context, a Access) error {
	settings, k := a.Settings.Serving(), a.Config
	if old := s.current; old != nil {
		same := s.config.Difference(k) == "" && s.config.TLSServerName == k.TLSServerName &&
			old.Identity == a.Identity && reflect.DeepEqual(old.Settings, settings)
		renewed := !bytes.Equal(s.config.CertData, k.CertData) || !bytes.Equal(s.config.KeyData, k.KeyData)
		if same && renewed {
			if err := old.Link.SetCertificate(k.CertData, k.KeyData); err != nil {
				return err
			}
			s.config = k
		}
		if same {
			return nil
		}
		s.End()
	}
	link, err := NewLink(k, s.UserAgent)
	if err != nil {
		return err
	}
	s.config, s.current = k, &Session{
		Link: link, Identity: a.Identity, Endpoint: k.Endpoint(), HubID: a.HubID, HubHash: kubeconfig.HubHash(k.Server), Settings: settings,
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	served := *s.current
	go func() {
		defer close(done)
		s.Serve(ctx, served)
	}()
	s.end = func() {
		cancel()
		<-done
		link.Close()
	}
	return nil
}

// End ends the session, if there is one, and waits for it.
func (s *Sessions) End() {
	if s.current == nil {
		return
	}
	if s.Ending != nil {
		s.Ending()
	}
	s.end()
	s.current = nil
}
