// SPDX-License-Identifier: Apache-2.0

package playground

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// pollEvery is the interval at which the readiness of a starting process is checked.
const pollEvery = 20 * time.Millisecond

// Sockets are named relative to the cluster's folder, which is the working directory of
// every process, so that the system's limit of 104 bytes for socket paths is kept however
// long the folder's name is. etcd requires a port: it is the number of the member.
const (
	etcdSocket = "etcd:"
	peerSocket = "peer:"
)

// frontProxyName is the common name with which kube-apiserver presents itself to aggregated APIs.
const frontProxyName = "front-proxy-client"

// idle lists the controllers that nothing in a playground needs; without them,
// kube-controller-manager is smaller and starts faster.
var idle = []string{
	"cloud-node-lifecycle-controller", "device-taint-eviction-controller", "ephemeral-volume-controller",
	"horizontal-pod-autoscaler-controller", "node-ipam-controller", "node-route-controller",
	"persistentvolume-attach-detach-controller", "persistentvolume-binder-controller",
	"persistentvolume-expander-controller", "persistentvolume-protection-controller",
	"persistentvolumeclaim-protection-controller", "resourceclaim-controller", "service-lb-controller",
	"storage-version-migrator-controller", "storageversion-garbage-collector-controller", "ttl-controller",
	"volumeattributesclass-protection-controller", "podgroup-protection-controller",
	"legacy-serviceaccount-token-cleaner-controller", "resourcepoolstatusrequest-controller",
}

// run starts one process and returns when it is ready. If it ends instead, the error has
// the end of its log.
func (c *Cluster) run(ctx context.Context, component Component) error {
	spec := process.Spec{Name: string(component), Dir: c.Dir, Env: c.config.Env}
	var ready func(context.Context) (bool, error)
	switch component {
	case APIServer:
		spec.Path, spec.Args, ready = c.config.Binaries.APIServer, c.apiserverArgs(), c.apiserverReady
	case ControllerManager:
		spec.Path, spec.Args, ready = c.config.Binaries.ControllerManager, c.managerArgs(), c.managerReady
	case ProcessNode:
		if !c.hasNode() {
			return fmt.Errorf("starting the process node: cluster %s was not given one", c.Name)
		}
		command := append(slices.Clone(c.config.Keeper), "node", filepath.Join(c.Dir, nodeConfig))
		spec.Path, spec.Args, spec.Env, ready = command[0], command[1:], c.config.KeeperEnv, c.exists(egressSocket)
	default:
		n := c.member(component)
		if n == 0 {
			return fmt.Errorf("starting %q: cluster %s has no such process", component, c.Name)
		}
		spec.Path, spec.Args, ready = c.config.Binaries.Etcd, c.etcdArgs(n), c.exists(etcdSocket+"1")
		if n > 1 {
			ready = func(context.Context) (bool, error) { return true, nil }
		}
	}
	if err := c.removeSockets(component); err != nil {
		return err
	}
	started, err := process.Start(spec)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextCancel(ctx, pollEvery, true, func(ctx context.Context) (bool, error) {
		select {
		case <-started.Done():
			return false, started.Failure()
		default:
		}
		var ok bool
		ok, last = ready(ctx)
		return ok, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("waiting for %s: %w; end of %s:\n%s", component, errors.Join(context.Cause(ctx), last), started.LogFile, process.Tail(started.LogFile, 12))
	}
	return err
}

// exists returns the readiness check of a process that creates a socket when it is ready.
// It only checks the file and does not connect: the full path may be too long for that.
func (c *Cluster) exists(socket string) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) {
		_, err := os.Stat(filepath.Join(c.Dir, socket))
		return err == nil, err
	}
}

// removeSockets removes the sockets that an earlier run of a process left behind.
func (c *Cluster) removeSockets(component Component) error {
	var sockets []string
	if n := c.member(component); n > 0 {
		sockets = []string{etcdSocket + strconv.Itoa(n), peerSocket + strconv.Itoa(n)}
	} else if component == ProcessNode {
		sockets = []string{egressSocket}
	}
	for _, socket := range sockets {
		if err := os.RemoveAll(filepath.Join(c.Dir, socket)); err != nil {
			return err
		}
	}
	return nil
}

// member returns the number of the member of etcd that a process is; 0 when it is none.
func (c *Cluster) member(component Component) int {
	for n := range max(1, c.config.EtcdMembers) {
		if component == Member(n+1) {
			return n + 1
		}
	}
	return 0
}

func (c *Cluster) etcdArgs(n int) []string {
	name := func(n int) string { return fmt.Sprintf("%s-%d", c.Name, n) }
	peer := func(n int) string { return fmt.Sprintf("unix://%s%d", peerSocket, n) }
	var all []string
	for i := range max(1, c.config.EtcdMembers) {
		all = append(all, name(i+1)+"="+peer(i+1))
	}
	return []string{
		"--name=" + name(n),
		"--data-dir=" + filepath.Join(c.Dir, string(Member(n))),
		fmt.Sprintf("--listen-client-urls=unix://%s%d", etcdSocket, n),
		fmt.Sprintf("--advertise-client-urls=unix://%s%d", etcdSocket, n),
		"--listen-peer-urls=" + peer(n),
		"--initial-advertise-peer-urls=" + peer(n),
		"--initial-cluster=" + strings.Join(all, ","),
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592", // as much as etcd recommends at most: thousands of clusters fill its default
		"--snapshot-count=2000",
		"--log-level=warn",
	}
}

func (c *Cluster) apiserverArgs() []string {
	args := []string{
		"--etcd-servers=unix://" + etcdSocket + "1",
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.port),
		"--permit-port-sharing",
		"--advertise-address=" + advertised,
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceRange,
		"--tls-cert-file=" + c.pki.serving.CertFile,
		"--tls-private-key-file=" + c.pki.serving.KeyFile,
		"--client-ca-file=" + c.pki.authority.CertFile(),
		"--requestheader-client-ca-file=" + c.pki.frontProxyCA,
		"--requestheader-allowed-names=" + frontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.pki.frontProxy.CertFile,
		"--proxy-client-key-file=" + c.pki.frontProxy.KeyFile,
		"--service-account-key-file=" + c.pki.serviceAccount,
		"--service-account-signing-key-file=" + c.pki.serviceAccount,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth",
		"--allow-privileged",
	}
	if c.hasNode() {
		args = append(args, c.nodeAPIArgs(c.pki.admin)...)
	}
	return append(args, c.config.APIServerArgs...)
}

func (c *Cluster) managerArgs() []string {
	args := []string{
		"--kubeconfig=" + c.pki.managerConfig,
		"--secure-port=0",
		"--leader-elect=false",
		"--root-ca-file=" + c.pki.authority.CertFile(),
		"--service-account-private-key-file=" + c.pki.serviceAccount,
		"--cluster-signing-cert-file=" + c.pki.authority.CertFile(),
		"--cluster-signing-key-file=" + c.pki.authority.KeyFile(),
		"--controllers=*,token-cleaner-controller,bootstrap-signer-controller,-" + strings.Join(idle, ",-"),
	}
	if c.config.SigningDuration > 0 {
		args = append(args, "--cluster-signing-duration="+c.config.SigningDuration.String())
	}
	return args
}
