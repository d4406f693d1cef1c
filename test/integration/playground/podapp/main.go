// SPDX-License-Identifier: Apache-2.0

// Command podapp is the program that the tests of the process node run in pods. It shows
// over HTTP (8080) what it sees of its pod: arguments, environment, files, and its user
// name at kube-apiserver. Over HTTPS (9443), with the certificate mounted at /certs, it
// serves an admission webhook that denies everything. It reads and listens through
// pkg/inpod only.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(3)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) > 1 && os.Args[1] == "once" {
		fmt.Println("ran once")
		return nil
	}
	var sick atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if sick.Load() {
			http.Error(w, "sick", http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("/sick", func(http.ResponseWriter, *http.Request) { sick.Store(true) })
	mux.HandleFunc("/pid", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) })
	mux.HandleFunc("/args", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Join(os.Args[1:], "|")) })
	mux.HandleFunc("/env", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, os.Getenv(r.FormValue("name"))) })
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, inpod.Path(r.FormValue("path"))) })
	mux.HandleFunc("/whoami", whoami)
	mux.HandleFunc("/exit", func(_ http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(r.FormValue("code"))
		if err != nil {
			code = 1
		}
		fmt.Println("exiting with", code)
		os.Exit(code)
	})
	plain, err := inpod.Listen(ctx, 8080)
	if err != nil {
		return err
	}
	ended := make(chan error, 2)
	go func() { ended <- serve(ctx, plain, mux) }()
	certificate, err := tls.LoadX509KeyPair(inpod.Path("/certs/tls.crt"), inpod.Path("/certs/tls.key"))
	if err == nil {
		secure, err := inpod.Listen(ctx, 9443)
		if err != nil {
			return err
		}
		config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
		go func() { ended <- serve(ctx, tls.NewListener(secure, config), http.HandlerFunc(deny)) }()
	}
	fmt.Println("serving")
	err = <-ended
	if err == nil {
		fmt.Println("ended as asked")
	}
	return err
}

func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func whoami(w http.ResponseWriter, r *http.Request) {
	name, err := self(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, name)
}

func self(ctx context.Context) (string, error) {
	config, err := inpod.Config()
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

func deny(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "denied by podapp"}}
	review.Request = nil
	if err := json.NewEncoder(w).Encode(review); err != nil {
		fmt.Println("answering:", err)
	}
}
