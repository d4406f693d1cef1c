// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// page is the path of an application's page in a cluster, through its kube-apiserver, as
// "kubectl proxy" uses it.
const page = "/api/v1/namespaces/default/services/webdemo:8080/proxy/"

// application is what the demo deploys, relative to the root of the checkout.
const application = "examples/webdemo/manifests.yaml"

// step is one command of the demo.
type step struct {
	// why is printed above the command.
	why string
	// argv is what a user would type.
	argv []string
	// show turns the command's standard output into what is printed; nil prints all of it.
	show func(string) string
}

func (d *demo) steps() []step {
	steps := []step{{why: "Make one cluster the hub.", argv: ocm("hub", "init", "--context", hub)}}
	for _, name := range managed {
		steps = append(steps, step{why: "Let " + name + " join it. Nothing has to be copied and pasted.",
			argv: ocm("join", name, "--context", name, "--hub-context", hub, "--accept")})
	}
	steps = append(steps, step{why: "Declare an application on the hub, for both clusters.",
		argv: ocm("work", "apply", "webdemo", "-f", application, "-n", "default", "-c", strings.Join(managed, ","), "--context", hub, "--wait")})
	for _, name := range managed {
		steps = append(steps,
			step{why: "It runs on " + name + ":", argv: []string{"kubectl", "--context", name, "rollout", "status", "deployment/webdemo", "--timeout=60s"}},
			step{argv: []string{"kubectl", "--context", name, "get", "--raw", page}, show: text})
	}
	return append(steps,
		step{why: "The fleet as the hub sees it.", argv: ocm("cluster", "list", "--context", hub)},
		step{argv: ocm("work", "list", "--context", hub)})
}

func ocm(args ...string) []string { return append([]string{"kubectl", "ocm"}, args...) }

// play runs every step and finally prints what to try next.
func (d *demo) play(ctx context.Context) error {
	for _, s := range d.steps() {
		if err := d.run(ctx, s); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(d.out, `
Done in %s. Everything still runs; look around:

  export PATH=%s:$PATH KUBECONFIG=%s
  kubectl ocm cluster list --context %s
  kubectl --context %s get pods -A
  kubectl --context %s delete deployment webdemo     (and look again: it is back)

Stop it with: make demo-down
`, time.Since(d.start).Round(time.Second), d.path(), d.kubeconfig(), hub, managed[0], managed[0])
	return err
}

// path returns a PATH that includes kubectl and the plugin.
func (d *demo) path() string {
	return strings.Join([]string{d.tools, filepath.Dir(d.binaries.Kubectl)}, string(filepath.ListSeparator))
}

// run prints a command and runs it.
func (d *demo) run(ctx context.Context, s step) error {
	if s.why != "" {
		fmt.Fprintf(d.out, "\n# %s\n", s.why)
	}
	fmt.Fprintf(d.out, "$ %s\n", strings.Join(s.argv, " "))
	command := exec.CommandContext(ctx, d.binaries.Kubectl, s.argv[1:]...)
	command.Env = append(os.Environ(), "KUBECONFIG="+d.kubeconfig(), "PATH="+d.path()+string(filepath.ListSeparator)+os.Getenv("PATH"))
	command.Stdout, command.Stderr = d.out, os.Stderr
	var all bytes.Buffer
	if s.show != nil {
		command.Stdout = &all
	}
	if err := command.Run(); err != nil {
		return fmt.Errorf("running %s: %w", strings.Join(s.argv, " "), err)
	}
	if s.show != nil {
		fmt.Fprintln(d.out, s.show(all.String()))
	}
	return nil
}

var (
	head   = regexp.MustCompile(`(?s)<head>.*</head>`)
	tag    = regexp.MustCompile(`<[^>]*>`)
	blanks = regexp.MustCompile(`\s*\n\s*`)
)

// text returns the text of a page, on one line.
func text(html string) string {
	plain := tag.ReplaceAllString(strings.ReplaceAll(head.ReplaceAllString(html, ""), "</dt>", ": "), "")
	return blanks.ReplaceAllString(strings.TrimSpace(plain), " | ")
}
