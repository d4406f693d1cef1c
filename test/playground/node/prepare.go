// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/volume"
)

// prepare gives the pod its address, updates its volumes, and links them into the root
// folder of each container. It is repeated at every sync.
func (w *worker) prepare(ctx context.Context, pod *corev1.Pod) error {
	if w.address == "" {
		address, local, err := w.network.claim(string(pod.UID), pod.Status.PodIP, portsOf(&pod.Spec))
		if err != nil {
			return err
		}
		w.address, w.local = address, local
	}
	pod = w.addressed(pod)
	token := func(audience string, seconds int64) ([]byte, error) {
		return w.tokens.get(ctx, pod, audience, seconds)
	}
	for _, v := range pod.Spec.Volumes {
		files, shared, err := volumeFiles(pod, v, w.sources, token)
		if err != nil {
			return err
		}
		dir := w.volumeDir(v.Name)
		if shared {
			err = os.MkdirAll(dir, 0o700)
		} else {
			_, err = volume.Write(dir, files)
		}
		if err != nil {
			return fmt.Errorf("writing volume %s: %w", v.Name, err)
		}
	}
	for _, c := range w.all() {
		if err := w.mount(c); err != nil {
			return fmt.Errorf("mounting volumes of container %s: %w", c.spec.Name, err)
		}
	}
	return nil
}

// addressed returns the pod with the addresses that its status will have.
func (w *worker) addressed(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.PodIP, pod.Status.HostIP = w.address, nodeAddress
	return pod
}

func (w *worker) volumeDir(name string) string { return filepath.Join(w.dir, "volumes", name) }

func (c *container) root() string { return filepath.Join(c.dir, "root") }

// mount links volumes into the container's root folder.
func (w *worker) mount(c *container) error {
	if err := os.MkdirAll(filepath.Join(c.root(), "tmp"), 0o700); err != nil {
		return err
	}
	for _, m := range c.spec.VolumeMounts {
		if m.SubPath != "" && !filepath.IsLocal(m.SubPath) || m.SubPathExpr != "" {
			return fmt.Errorf("volume %s: the process node cannot mount this part of it", m.Name)
		}
		from := filepath.Join(w.volumeDir(m.Name), m.SubPath)
		to := filepath.Join(c.root(), filepath.Clean("/"+m.MountPath))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.Symlink(from, to); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// launch computes how to start a container.
func (w *worker) launch(pod *corev1.Pod, c *container) (launch, error) {
	pod = w.addressed(pod)
	base := map[string]string{
		"PATH":                          "/usr/local/bin:/usr/bin:/bin",
		"HOME":                          c.root(),
		"TMPDIR":                        filepath.Join(c.root(), "tmp"),
		"HOSTNAME":                      pod.Name,
		"KUBERNETES_SERVICE_HOST":       w.server.host,
		"KUBERNETES_SERVICE_PORT":       w.server.port,
		"KUBERNETES_SERVICE_PORT_HTTPS": w.server.port,
	}
	env, err := environment(pod, c.spec, base, w.sources)
	if err != nil {
		return launch{}, err
	}
	l := launch{program: w.config.Images[imageName(c.spec.Image)], local: w.local, workDir: filepath.Join(c.root(), filepath.Clean("/"+c.spec.WorkingDir))}
	words := c.spec.Args
	if len(c.spec.Command) > 0 {
		words = append(append([]string{}, c.spec.Command[1:]...), c.spec.Args...)
	}
	for _, word := range words {
		l.args = append(l.args, expand(word, env))
	}
	env[inpod.EnvRoot], env[inpod.EnvPorts] = c.root(), portMap(w.local)
	l.env = list(env)
	return l, os.MkdirAll(l.workDir, 0o700)
}
