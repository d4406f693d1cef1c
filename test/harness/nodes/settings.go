// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// containerdSettings: without restrict_oom_score_adj, sandboxes fail where
// CAP_SYS_RESOURCE is missing, and runc reports only "can't get final child's PID".
const containerdSettings = `version = 2
root = "DIR/containerd"
state = "/run/containerd-state"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "DIR/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "PAUSE"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "DIR/cni"
[plugins."io.containerd.internal.v1.opt"]
  path = "DIR/opt"
`

// networkSettings is the CNI configuration of the only node.
const networkSettings = `{"cniVersion": "0.4.0", "name": "NAME", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "PODS"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "DIR/addresses"}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
`

// kubeletSettings work with control groups of both versions: version 1 has to be allowed,
// and the groups of QoS classes are not needed. An empty resolvConf gives pods no name
// server, because none is reachable.
const kubeletSettings = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
containerRuntimeEndpoint: unix://DIR/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: DIR/pki/ca.crt}}
authorization: {mode: Webhook}
resolvConf: ""
localStorageCapacityIsolation: false
podLogsDir: DIR/pods
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi}
nodeStatusUpdateFrequency: 2s
`

// proxySettings: conntrack limits belong to the machine and stay as they are.
const proxySettings = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: DIR/kube-proxy.kubeconfig}
hostnameOverride: NAME
conntrack: {maxPerCore: 0, min: 0}
`

// writeSettings writes the configuration files of the node's programs.
func (c *Cluster) writeSettings() error {
	fill := strings.NewReplacer("DIR", c.dir, "NAME", c.Name, "PODS", c.podRange(), "PAUSE", PauseImage)
	for name, content := range map[string]string{
		"containerd.toml":      containerdSettings,
		"cni/10-node.conflist": networkSettings,
		"kubelet.yaml":         kubeletSettings,
		"kube-proxy.yaml":      proxySettings,
	} {
		path := filepath.Join(c.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(fill.Replace(content)), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// arguments returns the command line of a program.
func (c *Cluster) arguments(component Component) []string {
	switch component {
	case Etcd:
		return c.etcdArguments()
	case APIServer:
		return c.apiserverArguments()
	case ControllerManager:
		return c.managerArguments()
	case Scheduler:
		config := c.file("kube-scheduler.kubeconfig")
		return []string{"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config, "--leader-elect=false"}
	case Containerd:
		return []string{"--config=" + c.file("containerd.toml")}
	case Kubelet:
		return []string{
			"--config=" + c.file("kubelet.yaml"), "--kubeconfig=" + c.file("kubelet.kubeconfig"),
			"--hostname-override=" + c.Name, "--root-dir=" + c.file("kubelet"), "--node-ip=" + c.Address,
		}
	default:
		return []string{"--config=" + c.file("kube-proxy.yaml")}
	}
}

// etcd does not sync: a test does not survive a power cut anyway.
func (c *Cluster) etcdArguments() []string {
	const client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
	return []string{
		"--name=" + c.Name, "--data-dir=" + c.file("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=" + c.Name + "=" + peer,
	}
}

// frontProxyName is the common name with which kube-apiserver presents itself to aggregated APIs.
const frontProxyName = "front-proxy-client"

// kube-apiserver advertises the address on the fabric: with a loopback address
// the Service "kubernetes" would get no endpoints.
func (c *Cluster) apiserverArguments() []string {
	return []string{
		"--etcd-servers=http://127.0.0.1:2379",
		fmt.Sprintf("--secure-port=%d", apiserverPort),
		"--bind-address=0.0.0.0",
		"--advertise-address=" + c.Address,
		"--service-cluster-ip-range=" + c.serviceRange(),
		"--tls-cert-file=" + c.pki("kube-apiserver.crt"),
		"--tls-private-key-file=" + c.pki("kube-apiserver.key"),
		"--tls-sni-cert-key=" + c.pki("elsewhere/kube-apiserver.crt") + "," + c.pki("elsewhere/kube-apiserver.key") + ":" + c.secondAddress(),
		"--client-ca-file=" + c.pki("ca.crt"),
		"--requestheader-client-ca-file=" + c.pki("front-proxy/ca.crt"),
		"--requestheader-allowed-names=" + frontProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-uid-headers=X-Remote-Uid",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.pki("front-proxy/client.crt"),
		"--proxy-client-key-file=" + c.pki("front-proxy/client.key"),
		"--service-account-key-file=" + c.pki("service-account.key"),
		"--service-account-signing-key-file=" + c.pki("service-account.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--kubelet-client-certificate=" + c.pki("admin.crt"),
		"--kubelet-client-key=" + c.pki("admin.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--enable-bootstrap-token-auth",
		"--allow-privileged",
	}
}

func (c *Cluster) managerArguments() []string {
	config := c.file("kube-controller-manager.kubeconfig")
	arguments := []string{
		"--kubeconfig=" + config, "--authentication-kubeconfig=" + config, "--authorization-kubeconfig=" + config,
		"--leader-elect=false",
		"--use-service-account-credentials",
		"--root-ca-file=" + c.pki("ca.crt"),
		"--service-account-private-key-file=" + c.pki("service-account.key"),
		"--cluster-signing-cert-file=" + c.pki("ca.crt"),
		"--cluster-signing-key-file=" + c.pki("ca.key"),
		"--controllers=*,token-cleaner-controller,bootstrap-signer-controller",
	}
	if c.options.SigningDuration > 0 {
		arguments = append(arguments, "--cluster-signing-duration="+c.options.SigningDuration.Round(time.Second).String())
	}
	return arguments
}
