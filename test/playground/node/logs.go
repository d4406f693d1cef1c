// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"
)

// followEvery is the interval at which a followed log is read.
const followEvery = 200 * time.Millisecond

// administrators is the group of the certificate that kube-apiserver presents. The same
// authority signs all other certificates in the cluster, so a valid signature alone is
// not enough.
const administrators = "system:masters"

// listenLogs opens the part of kubelet's API that `kubectl logs` needs, for
// kube-apiserver only. The returned function serves.
func (m *manager) listenLogs(ctx context.Context) (func(context.Context) error, error) {
	authority, err := os.ReadFile(m.config.ClientCA)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.LoadX509KeyPair(m.config.Serving.CertFile, m.config.Serving.KeyFile)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, errors.New("reading the client certificate authority: no certificate found")
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil, fmt.Errorf("opening the log endpoint: unexpected address %T", listener.Addr())
	}
	m.kubelet = address.Port
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", m.serveLog)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the process node serves logs only: no exec, attach or port-forward", http.StatusNotImplemented)
	})
	server := &http.Server{
		Handler: administratorsOnly(mux), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
		TLSConfig: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			Certificates: []tls.Certificate{certificate},
			ClientAuth:   tls.RequireAndVerifyClientCert,
			ClientCAs:    pool,
		},
	}
	return func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = server.Close() })()
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	}, nil
}

// administratorsOnly refuses clients without an administrator's certificate.
func administratorsOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 || !slices.Contains(r.TLS.PeerCertificates[0].Subject.Organization, administrators) {
			http.Error(w, "only kube-apiserver may ask", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveLog answers one request for a container's log. Names come from the API
// server, which has checked that pod and container exist on this node.
func (m *manager) serveLog(w http.ResponseWriter, r *http.Request) {
	pod, err := m.pods.Pods(r.PathValue("namespace")).Get(r.PathValue("pod"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	name := ""
	for _, c := range containers(&pod.Spec) {
		if c.Name == r.PathValue("container") {
			name = c.Name
		}
	}
	file, err := os.Open(m.logFile(pod.Namespace, pod.Name, name))
	if err != nil {
		http.Error(w, "the container has not written a log", http.StatusNotFound)
		return
	}
	defer file.Close()
	query := r.URL.Query()
	if lines, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		if err := seekTail(file, lines); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := io.Writer(w)
	if limit, err := strconv.ParseInt(query.Get("limitBytes"), 10, 64); err == nil {
		_, _ = io.CopyN(out, file, limit) // the reader went away, or the file ended
		return
	}
	follow := query.Get("follow") == "true"
	for {
		if _, err := io.Copy(out, file); err != nil || !follow {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil || !m.pause(r.Context(), followEvery) {
			return
		}
	}
}

// pause waits, and reports whether ctx is still alive.
func (m *manager) pause(ctx context.Context, d time.Duration) bool {
	return prober{clock: m.config.Clock}.pause(ctx, d)
}

// seekTail moves to the beginning of the last lines of a file.
func seekTail(file io.ReadSeeker, lines int) error {
	const block = 8 << 10
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if lines <= 0 {
		return nil
	}
	buffer := make([]byte, block)
	for position, found := end, 0; position > 0; {
		size := min(block, position)
		position -= size
		if _, err := file.Seek(position, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.ReadFull(file, buffer[:size]); err != nil {
			return err
		}
		for i := bytes.LastIndexByte(buffer[:size], '\n'); i >= 0; i = bytes.LastIndexByte(buffer[:i], '\n') {
			if position+int64(i) == end-1 {
				continue // no line starts after the last line break
			}
			if found++; found >= lines {
				_, err := file.Seek(position+int64(i)+1, io.SeekStart)
				return err
			}
		}
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}
