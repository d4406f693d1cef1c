// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/join"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

// defaultClusters is the number of managed clusters of a new lab.
const defaultClusters = 2

// Setup is what the clusters of a lab run.
type Setup struct {
	// Binaries are those of Kubernetes.
	Binaries playground.Binaries `json:"binaries"`
	// Programs are what the process nodes can run, by the last part of the image's
	// repository; ocm-hub and ocm-agent have to be among them.
	Programs map[string]string `json:"programs"`
	// Keeper is the command that runs a process node; see playground.Config.
	Keeper []string `json:"keeper"`
	// Version is the tag of the images of hub and agent.
	Version string `json:"version"`
}

// Options say which lab to work on.
type Options struct {
	fleet.Common
	// Root is the folder of all labs, Name the name of this one.
	Root, Name string
	// Clusters is the number of managed clusters; 0 keeps what the lab has, at first two.
	Clusters int
	// Setup is what they run.
	Setup Setup
	// Env is the environment of the process nodes.
	Env []string
	// Kubeconfig are the user's files, which get a context for each cluster.
	Kubeconfig clientcmd.ConfigAccess
	// Use makes the hub the current context.
	Use bool
}

// Item is what was done with one cluster.
type Item struct {
	Cluster string       `json:"cluster"`
	Context string       `json:"context"`
	Action  fleet.Action `json:"action"`
}

// Result is what was done with a lab.
type Result struct {
	Name   string `json:"name"`
	Folder string `json:"folder"`
	Items  []Item `json:"items"`
}

// Fewer is the error for a number of clusters below what the lab has.
type Fewer struct {
	// Has is the number of clusters, Wanted the lower one.
	Has, Wanted int
}

// Error has both numbers.
func (e *Fewer) Error() string {
	return fmt.Sprintf("the playground has %d managed clusters, and cannot shrink to %d", e.Has, e.Wanted)
}

// Up starts a lab, or mends what died of it, and returns when all clusters are available on
// its hub. Of a new lab nothing is left after an interrupt, or if a cluster does not start.
func Up(ctx context.Context, o Options) (Result, error) {
	_, cancel, r := o.Begin(ctx)
	defer cancel()
	l, unlock, err := open(o.Root, o.Name, !o.Reads())
	if errors.Is(err, ErrNone) {
		l, unlock, err = &lab{name: o.Name, dir: filepath.Join(o.Root, o.Name)}, func() {}, nil
	}
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	up := &up{lab: l, o: &o, r: r, actions: map[string]fleet.Action{}}
	err = up.plan()
	if err == nil && !o.Reads() {
		err = up.run(ctx)
	}
	if err != nil && !l.known && !o.Reads() && (ctx.Err() != nil || !up.started) {
		err = errors.Join(err, l.remove())
	}
	return up.result(), err
}

// up is one run of Up.
type up struct {
	*lab
	o *Options
	r *fleet.Run
	// mu guards actions, what was done with each cluster.
	mu      sync.Mutex
	actions map[string]fleet.Action
	// started is set when all clusters run.
	started bool
}

func (u *up) did(cluster string, action fleet.Action) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.actions[cluster] != fleet.Created {
		u.actions[cluster] = action
	}
}

func (u *up) result() Result {
	result := Result{Name: u.name, Folder: u.dir}
	for _, cluster := range u.clusters() {
		result.Items = append(result.Items, Item{cluster, Context(u.name, cluster), u.actions[cluster]})
	}
	return result
}

// plan decides what to do with each cluster, and refuses what cannot be done.
func (u *up) plan() error {
	has := u.record.Clusters
	switch {
	case u.o.Clusters == 0 && has == 0:
		u.record.Clusters = defaultClusters
	case u.o.Clusters != 0 && u.o.Clusters < has:
		return &Fewer{Has: has, Wanted: u.o.Clusters}
	case u.o.Clusters != 0:
		u.record.Clusters = u.o.Clusters
	}
	config, err := u.o.Kubeconfig.GetStartingConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	if err := u.free(config); err != nil {
		return err
	}
	same := reflect.DeepEqual(u.record.Setup, u.o.Setup)
	for _, cluster := range u.clusters() {
		health, err := playground.Inspect(u.folder(cluster))
		switch {
		case err != nil:
			return err
		case health.Port == 0:
			u.actions[cluster] = fleet.Created
		case same && len(health.Ended) == 0:
			u.actions[cluster] = fleet.Unchanged
		default:
			u.actions[cluster] = fleet.Configured
		}
	}
	return nil
}

func (u *up) run(ctx context.Context) error {
	if err := u.write(); err != nil {
		return err
	}
	u.r.Step("clusters")
	if err := u.each(u.clusters(), func(cluster string) error { return u.start(ctx, cluster) }); err != nil {
		return u.r.Fail(err)
	}
	u.started, u.record.Setup = true, u.o.Setup
	u.r.Done(fmt.Sprintf("%d run Kubernetes %s", len(u.clusters()), playground.KubernetesVersion))
	u.r.Step("contexts")
	if err := u.addContexts(u.o.Kubeconfig, u.o.Use); err != nil {
		return u.r.Fail(err)
	}
	u.r.Done("")
	u.r.Step("hub")
	if err := u.init(ctx); err != nil {
		return u.r.Fail(err)
	}
	u.r.Done("ready")
	u.r.Step("managed clusters")
	if err := u.each(u.clusters()[1:], func(cluster string) error { return u.join(ctx, cluster) }); err != nil {
		return u.r.Fail(err)
	}
	u.r.Done(fmt.Sprintf("%d available", u.record.Clusters))
	return nil
}

// each works on clusters side by side, and tells how many are done.
func (u *up) each(clusters []string, do func(string) error) error {
	var group errgroup.Group
	done := 0
	for _, cluster := range clusters {
		group.Go(func() error {
			if err := do(cluster); err != nil {
				return err
			}
			u.mu.Lock()
			defer u.mu.Unlock()
			done++
			u.r.Detail(fmt.Sprintf("%d of %d", done, len(clusters)))
			return nil
		})
	}
	return group.Wait()
}

// start starts a cluster that does not run as it should; its data stay.
func (u *up) start(ctx context.Context, cluster string) error {
	if u.actions[cluster] == fleet.Unchanged {
		return nil
	}
	_, err := playground.Start(ctx, playground.Config{
		Dir: u.folder(cluster), Name: cluster, Binaries: u.o.Setup.Binaries,
		Keeper: u.o.Setup.Keeper, KeeperEnv: u.o.Env, Images: u.o.Setup.Programs,
	})
	return err
}

// common are the options of one of the operations that make up the whole.
func (u *up) common() fleet.Common {
	return fleet.Common{Wait: true, Timeout: u.o.Timeout, Clock: u.o.Clock}
}

func (u *up) init(ctx context.Context) error {
	c, err := u.connect(Hub)
	if err != nil {
		return err
	}
	images := hub.Images("", u.o.Setup.Version)
	result, err := hub.Init(ctx, hub.InitOptions{Common: u.common(), Hub: c, Image: images[0], Version: u.o.Setup.Version})
	if err == nil && result.Action != fleet.Unchanged {
		u.did(Hub, fleet.Configured)
	}
	return err
}

func (u *up) join(ctx context.Context, cluster string) error {
	to, err := u.connect(Hub)
	if err != nil {
		return err
	}
	c, err := u.connect(cluster)
	if err != nil {
		return err
	}
	images := hub.Images("", u.o.Setup.Version)
	result, err := join.Run(ctx, join.Options{
		Common: u.common(), Name: cluster, Spoke: c, Hub: to, Accept: true, Image: images[1], Version: u.o.Setup.Version,
	})
	if err == nil && result.Action != fleet.Unchanged {
		u.did(cluster, fleet.Configured)
	}
	return err
}
