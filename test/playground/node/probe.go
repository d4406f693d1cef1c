// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
)

// eager is the interval of probes until the first success; kubelet would wait a whole
// period.
const eager = 200 * time.Millisecond

// health is the result of the probes of a running container.
type health struct {
	// started is true when there is no startup probe or it succeeded.
	started bool
	// ready is true when there is no readiness probe or it succeeded.
	ready bool
	// unhealthy is the reason why the container must be restarted, if it must.
	unhealthy string
}

// prober probes one running container.
type prober struct {
	container *corev1.Container
	// local maps the pod's ports to loopback ports.
	local map[int32]int
	clock clock.WithTicker
	// report is called from the prober's goroutines with every verdict.
	report func(change func(*health))
}

// initialHealth returns the health of a container that has just started.
func initialHealth(c *corev1.Container) health {
	return health{started: c.StartupProbe == nil, ready: c.ReadinessProbe == nil && c.StartupProbe == nil}
}

// run probes until ctx, which ends with the process.
func (p prober) run(ctx context.Context) {
	if startup := p.container.StartupProbe; startup != nil {
		limit := seconds(startup.PeriodSeconds, 10) * time.Duration(threshold(startup.FailureThreshold))
		if err := p.await(ctx, startup, limit); err != nil {
			p.report(func(h *health) { h.unhealthy = fmt.Sprintf("startup probe: %v", err) })
			return
		}
		p.report(func(h *health) { h.started, h.ready = true, p.container.ReadinessProbe == nil })
	}
	if liveness := p.container.LivenessProbe; liveness != nil {
		go p.watch(ctx, liveness, func(cause error) {
			if cause != nil {
				p.report(func(h *health) { h.unhealthy = fmt.Sprintf("liveness probe: %v", cause) })
			}
		})
	}
	if readiness := p.container.ReadinessProbe; readiness != nil && p.await(ctx, readiness, 0) == nil {
		p.report(func(h *health) { h.ready = true })
		p.watch(ctx, readiness, func(cause error) { p.report(func(h *health) { h.ready = cause == nil }) })
	}
}

// await probes eagerly until the first success, for no longer than limit (zero: until ctx
// ends).
func (p prober) await(ctx context.Context, probe *corev1.Probe, limit time.Duration) error {
	if !p.pause(ctx, seconds(probe.InitialDelaySeconds, 0)) {
		return ctx.Err()
	}
	began := p.clock.Now()
	for {
		err := p.probeOnce(ctx, probe)
		if err == nil || limit > 0 && p.clock.Since(began) >= limit {
			return err
		}
		if !p.pause(ctx, eager) {
			return ctx.Err()
		}
	}
}

// watch probes once a period and reports its verdict: nil after successThreshold
// successes in a row, the cause after failureThreshold failures in a row.
func (p prober) watch(ctx context.Context, probe *corev1.Probe, verdict func(cause error)) {
	var successes, failures int32
	for p.pause(ctx, seconds(probe.PeriodSeconds, 10)) {
		cause := p.probeOnce(ctx, probe)
		if cause == nil {
			successes, failures = successes+1, 0
		} else {
			successes, failures = 0, failures+1
		}
		if ctx.Err() == nil && (successes >= max(1, probe.SuccessThreshold) || failures >= threshold(probe.FailureThreshold)) {
			verdict(cause)
		}
	}
}

func threshold(n int32) int32 {
	if n == 0 {
		return 3
	}
	return n
}

func seconds(n, otherwise int32) time.Duration {
	if n == 0 {
		n = otherwise
	}
	return time.Duration(n) * time.Second
}

// pause waits, and reports whether ctx is still alive.
func (p prober) pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := p.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// probeOnce runs a probe once.
func (p prober) probeOnce(ctx context.Context, probe *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, seconds(probe.TimeoutSeconds, 1))
	defer cancel()
	switch {
	case probe.HTTPGet != nil:
		return p.askHTTP(ctx, probe.HTTPGet)
	case probe.TCPSocket != nil:
		address, err := p.address(probe.TCPSocket.Port)
		if err != nil {
			return err
		}
		var dialer net.Dialer
		connection, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	default:
		return nil // refused before the container started, see unsupported
	}
}

func (p prober) askHTTP(ctx context.Context, get *corev1.HTTPGetAction) error {
	address, err := p.address(get.Port)
	if err != nil {
		return err
	}
	scheme := "http"
	if get.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	url := scheme + "://" + address + "/" + strings.TrimPrefix(get.Path, "/")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	for _, header := range get.HTTPHeaders {
		request.Header.Add(header.Name, header.Value)
	}
	// As in kubelet, certificates are not verified, connections are not reused, and a
	// redirect is a success.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // as kubelet
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	if err := response.Body.Close(); err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s answered %s", get.Path, response.Status)
	}
	return nil
}

// address returns the loopback address behind a probe's port.
func (p prober) address(port intstr.IntOrString) (string, error) {
	number, ok := containerPort(p.container, port)
	local, mapped := p.local[number]
	if !ok || !mapped {
		return "", fmt.Errorf("the container has no port %s", port.String())
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(local)), nil
}

// containerPort resolves a port given by number or by the name of a declared one.
func containerPort(c *corev1.Container, port intstr.IntOrString) (int32, bool) {
	if port.Type == intstr.Int {
		return port.IntVal, true
	}
	for _, declared := range c.Ports {
		if declared.Name == port.StrVal {
			return declared.ContainerPort, true
		}
	}
	return 0, false
}
