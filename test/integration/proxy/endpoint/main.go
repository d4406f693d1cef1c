// SPDX-License-Identifier: Apache-2.0

// Command endpoint is one end of tunnels and nothing else, so that their memory can be measured
// from outside:
//
//	endpoint hub KUBECONFIG CERTIFICATE KEY
//	endpoint agent KUBECONFIG SPOKE-KUBECONFIG CLUSTER
//
// The hub prints the port of its API; the agent opens its tunnel when it reads the line "open".
// For each line "rest" both return unused memory to the system and answer with a line. They end
// with their input.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	proxyagent "github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/agent"
	proxyhub "github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/hub"
	registration "github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
)

const version = "v0.0.0-test"

func main() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err) //nolint:gocritic // the process ends
	}
}

var errUsage = errors.New("usage: endpoint hub|agent KUBECONFIG FILE NAME")

func run(ctx context.Context, args []string) error {
	const words = 4
	if len(args) != words {
		return errUsage
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[1])
	if err != nil {
		return err
	}
	switch args[0] {
	case "hub":
		if err := serve(ctx, config, args[2], args[3]); err != nil {
			return err
		}
		return obey(os.Stdin, func() {})
	case "agent":
		open, err := offer(ctx, config, args[2], args[3])
		if err != nil {
			return err
		}
		return obey(os.Stdin, open)
	}
	return errUsage
}

// obey follows the lines of its input until it ends.
func obey(in io.Reader, open func()) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		switch lines.Text() {
		case "open":
			open()
		case "rest":
			debug.FreeOSMemory()
			fmt.Println("rested")
		}
	}
	return lines.Err()
}

// serve serves the API of tunnels on a port that it prints.
func serve(ctx context.Context, config *rest.Config, certFile, keyFile string) error {
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	var all net.ListenConfig
	listener, err := all.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := proxyhub.NewServer(proxyhub.Options{
		Client: client, Registry: proxyhub.NewRegistry(time.Now), Clock: clock.RealClock{}, Version: version, Log: logr.Discard(),
		Certificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil },
	})
	go func() { log.Fatal(server.Run(ctx, listener)) }()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	return nil
}

// offer connects to both API servers, and returns what opens the tunnel.
func offer(ctx context.Context, config *rest.Config, spokeFile, cluster string) (open func(), err error) {
	spoke, err := clientcmd.BuildConfigFromFlags("", spokeFile)
	if err != nil {
		return nil, err
	}
	link, err := registration.NewLink(&kubeconfig.Config{
		Server: config.Host, CAData: config.CAData, CertData: config.CertData, KeyData: config.KeyData,
	}, "endpoint")
	if err != nil {
		return nil, err
	}
	// An agent has open connections to both, whether it has a tunnel or not.
	for _, c := range []*rest.Config{link.Config, spoke} {
		if err := answers(ctx, c); err != nil {
			return nil, err
		}
	}
	c := proxyagent.New(proxyagent.Config{
		Hub: config.Host, Upgrades: link.Upgrades, Spoke: spoke, Cluster: cluster, Version: version, UserAgent: "endpoint",
		Clock: clock.RealClock{}, Random: func() float64 { return 0 }, Log: logr.Discard(),
	})
	return func() {
		go func() { log.Fatal(c.Run(ctx)) }()
	}, nil
}

// answers sends a request that everybody may send.
func answers(ctx context.Context, config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/version", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}
