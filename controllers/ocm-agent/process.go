// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/agents"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/klusterlet"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/selection"
	work "github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/lock"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// process is the state of one ocm-agent process.
type process struct {
	o     options
	log   logr.Logger
	clock clock.WithTicker
	// server answers for health and metrics.
	server *observe.Server
	// files are what the watched files held when the process started.
	files files
	// management is the cluster that the agent runs on, with its secrets and its lock; spoke is
	// the one that it manages: the same one, unless the agent is hosted.
	management, spoke *cluster

	// The loops are recreated each time the lock is acquired. Without the registration there
	// are none of them.
	credential *credential.Controller
	selection  *selection.Controller
	operator   *klusterlet.Controller

	current  atomic.Pointer[session]
	accepted atomic.Bool
	// unknown is true while the hub refuses a session because it does not know its credential.
	unknown atomic.Bool
	held    atomic.Bool
	// seen holds the signs of life of the hub that the current session saw, besides lease
	// renewals.
	seen atomic.Pointer[selection.Signs]

	// profile is what its ConfigMap says about the limits of connections; nil without one.
	profile atomic.Pointer[observe.TLS]

	workMetrics work.Metrics
	// workProblem holds the string that says why works are not processed.
	workProblem atomic.Value
}

func newProcess(o options, log logr.Logger) (*process, error) {
	p := &process{o: o, log: log, clock: clock.RealClock{}, files: readFiles(o.terminateOn)}
	var err error
	if p.management, err = connect("kubeconfig", o.kubeconfig); err != nil {
		return nil, err
	}
	p.spoke = p.management
	if o.spokeKubeconfig != "" {
		p.spoke, err = connect("spoke-kubeconfig", o.spokeKubeconfig)
	}
	return p, err
}

func userAgent() string { return "ocm-agent/" + version.Get() }

// run serves health and metrics, and runs the loops while it holds the lock.
func (p *process) run(ctx context.Context) error {
	ctx = logr.NewContext(ctx, p.log)
	p.server = observe.NewServer(observe.Options{
		Metrics: p.metrics(), Access: observe.NewReviews(p.management.client, p.clock), TLS: observe.Changing(p.limits), Now: p.clock.Now, Log: p.log,
	})
	p.server.AddReady("lock", func() error {
		if !p.held.Load() {
			return errors.New("another process of this agent is active")
		}
		return nil
	})
	listener, err := inpod.Listen(ctx, observe.Port)
	if err != nil {
		return err
	}
	loops := []loop{
		{"health", func(ctx context.Context) error { return p.server.Run(ctx, listener) }},
		{"lock", p.runLocked},
	}
	if len(p.files) > 0 {
		loops = append(loops, loop{"files", func(ctx context.Context) error { return p.files.watch(ctx, p.clock) }})
	}
	return runAll(ctx, loops)
}

// limits returns what limits the connections that the process accepts now.
func (p *process) limits() observe.TLS {
	if t := p.profile.Load(); t != nil {
		return *t
	}
	return p.o.tls
}

// runLocked runs the loops of the command while this process holds its lock.
func (p *process) runLocked(ctx context.Context) error {
	start := func(ctx context.Context) error { return p.o.start(p, ctx) }
	if p.o.unlocked {
		return start(ctx)
	}
	l := &lock.Lock{
		Client: p.management.client, Namespace: p.o.namespace, Name: p.o.lock, Times: p.o.times, Pod: inpod.Name(), Process: string(uuid.NewUUID()),
		Labels: p.labels(), Clock: p.clock, Log: p.log,
	}
	return l.Run(ctx, start)
}

// labels returns the labels that mark the agent's objects on its cluster as part of its
// Klusterlet.
func (p *process) labels() map[string]string {
	if p.o.klusterlet == "" {
		return nil
	}
	return map[string]string{operatorv1.LabelCreatedByKlusterlet: p.o.klusterlet}
}

// workMounted applies works with the mounted access to the hub.
func (p *process) workMounted(ctx context.Context) error {
	defer p.held.Store(false)
	m := p.newMounted()
	p.server.AddReady("hub-kube-config", m.ready)
	p.held.Store(true)
	return m.run(ctx)
}

// register creates the loops of the registration, which starts a session once it has access to
// the hub, and runs them.
func (p *process) register(ctx context.Context) error {
	defer p.held.Store(false)
	secrets := credential.NewSecrets(p.management.client, p.o.namespace, p.log)
	p.credential = credential.New(credential.Config{
		Management: p.management.client, Namespace: p.o.namespace, Secrets: secrets, SpokeCA: p.spoke.ca, Labels: p.labels(),
		UserAgent: userAgent(), Clock: p.clock, Serve: p.serve, OnReport: p.onReport,
		Choose: func() (string, string) { return p.selection.Chosen() }, Unknown: p.unknown.Load,
	})
	p.selection = selection.New(selection.Config{
		Namespace: p.o.namespace, Secrets: secrets, Registration: p.credential, Signs: p.signs,
		OnChange: p.onChosen, UserAgent: userAgent(), Clock: p.clock, Random: rand.Float64,
	})
	p.operator = nil
	// Metrics read the loops only while held is true; from here on the loops exist.
	p.held.Store(true)
	loops := []loop{{"secrets", secrets.Run}, {credential.Name, p.credential.Run}, {selection.Name, p.selection.Run}}
	if !p.o.operator {
		p.credential.Configure(&p.o.settings)
		return runAll(ctx, loops)
	}
	definitions, err := crd.Agent()
	if err != nil {
		return err
	}
	installer, others := p.newInstaller(definitions)
	others.OnChange(func(reconcile.Key) { p.wakeOperator() })
	p.operator = klusterlet.New(klusterlet.Config{
		Spoke: p.spoke.client, Name: p.o.klusterlet, Namespace: p.o.namespace, Definitions: definitions, Version: version.Get(),
		UserAgent: userAgent(), Secrets: secrets, Registration: p.credential, WorkProblem: p.problemOfWorks,
		Others: func() []string { return agents.Others(others, p.o.klusterlet) },
		Hubs:   p.selection.Message, Accepted: p.accepted.Load, Trouble: p.trouble, OnLimits: p.profile.Store, Clock: p.clock, Log: p.log,
	})
	for _, c := range p.operator.Collections() {
		loops = append(loops, loop{"collection", c.Run})
	}
	return runAll(ctx, append(loops, loop{klusterlet.Name, p.operator.Run}, loop{"klusterlets", others.Run}, loop{agents.Name, installer.Run}))
}

// onReport wakes the loops that report the state of the registration.
func (p *process) onReport() {
	p.selection.Wake()
	p.wakeOperator()
	if s := p.current.Load(); s != nil {
		s.status.Wake()
	}
}

// onChosen wakes the loops that depend on which hub is chosen.
func (p *process) onChosen() {
	p.credential.Wake()
	p.wakeOperator()
}

func (p *process) wakeOperator() {
	if p.operator != nil {
		p.operator.Wake()
	}
}

// signs returns the signs of life of the current session's hub.
func (p *process) signs() selection.Signs {
	var out selection.Signs
	if seen := p.seen.Load(); seen != nil {
		out = *seen
	}
	if s := p.current.Load(); s != nil && s.heartbeat.Renewed().After(out.At) {
		out.At = s.heartbeat.Renewed()
	}
	return out
}

// recordSigns records that a session got an answer of its hub.
func (p *process) recordSigns(server string, unaccepted bool) {
	before := p.seen.Swap(&selection.Signs{Server: server, At: p.clock.Now(), Unaccepted: unaccepted})
	if p.selection != nil && (before == nil || before.Unaccepted != unaccepted) {
		p.selection.Wake()
	}
}

// trouble returns what fails in the communication with the hub.
func (p *process) trouble() agent.Trouble {
	if s := p.current.Load(); s != nil {
		return s.contact.Trouble()
	}
	return agent.Trouble{}
}

// setUnknown records whether the hub refuses a session because it does not know its credential.
func (p *process) setUnknown(unknown bool) {
	if p.unknown.Swap(unknown) != unknown && p.credential != nil {
		p.credential.Wake()
	}
}

func (p *process) setAccepted(accepted bool) {
	if p.accepted.Swap(accepted) != accepted {
		p.wakeOperator()
	}
}

func (p *process) setWorkProblem(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if before, _ := p.workProblem.Swap(text).(string); before != text {
		p.wakeOperator()
	}
}

func (p *process) problemOfWorks() string {
	text, _ := p.workProblem.Load().(string)
	return text
}

var errEnded = errors.New("ended unexpectedly")

// loop runs until its context is done.
type loop struct {
	name string
	run  func(context.Context) error
}

// runAll runs the loops until ctx is done or one of them ends, and waits for all.
func runAll(ctx context.Context, loops []loop) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	errs := make([]error, len(loops))
	for i, l := range loops {
		running.Go(func() {
			defer cancel()
			if err := cmp.Or(l.run(ctx), errEnded); ctx.Err() == nil {
				errs[i] = fmt.Errorf("running %s: %w", l.name, err)
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
