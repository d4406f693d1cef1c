// SPDX-License-Identifier: Apache-2.0

// Command otherhub stands in for the programs of another distribution's hub: with the argument
// webhook-server it admits everything and converts by name, otherwise it does nothing until it
// is ended.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == "webhook-server" {
		if err := serve(ctx); err != nil {
			log.Fatal(err) //nolint:gocritic // the process ends
		}
		return
	}
	<-ctx.Done()
}

func serve(ctx context.Context) error {
	listener, err := inpod.Listen(ctx, 9443)
	if err != nil {
		return err
	}
	folder := inpod.Path("/tmp/k8s-webhook-server/serving-certs")
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key"))
		return &pair, err
	}}
	server := &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(tls.NewListener(listener, config)); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// answer admits what it is asked about, and gives objects the version that they are wanted in.
func answer(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Request    map[string]any `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	said := map[string]any{"uid": review.Request["uid"], "allowed": true}
	if objects, ok := review.Request["objects"].([]any); ok {
		for _, o := range objects {
			o.(map[string]any)["apiVersion"] = review.Request["desiredAPIVersion"]
		}
		said = map[string]any{"uid": review.Request["uid"], "convertedObjects": objects, "result": map[string]any{"status": "Success"}}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "response": said})
}
