// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

// port is the container port; grace is how long open requests may take to finish.
const (
	port  = 8080
	grace = 5 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "webdemo: %v\n", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context) error {
	shown := pageFrom(os.Getenv, version.Get())
	content, err := handler(shown)
	if err != nil {
		return fmt.Errorf("making the page: %w", err)
	}
	listener, err := inpod.Listen(ctx, port)
	if err != nil {
		return err
	}
	fmt.Printf("webdemo %s serves pod %s on %s\n", shown.Version, shown.Pod, listener.Addr())
	return serve(ctx, listener, content)
}

// serve answers requests until ctx ends, then lets open ones finish.
func serve(ctx context.Context, listener net.Listener, content http.Handler) error {
	server := &http.Server{
		Handler:           content,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := server.Shutdown(last); err != nil {
		return fmt.Errorf("ending open requests: %w", err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}
