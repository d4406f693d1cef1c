// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

const (
	// plugin is the program that kubectl runs for "kubectl ocm".
	plugin = "kubectl-ocm"
	// ours is the prefix of programs that kubectl runs in place of our commands.
	ours = plugin + "-"
	// completer is the program that kubectl asks for completions.
	completer = "kubectl_complete-ocm"
)

// kubectlTimeout bounds the time in which kubectl has to tell its version.
const kubectlTimeout = 3 * time.Second

// machine checks this machine: the kubeconfig, and what is on PATH. Only what is wrong is a finding. Where manifests
// are judged, perhaps by no person, only what would be run instead counts.
func (o *Options) machine(ctx context.Context) check.Area {
	area := check.Area{Name: "this machine"}
	files, _ := o.Given()
	for _, one := range []struct {
		code string
		look func(context.Context) []check.Finding
	}{{check.CodeContext, o.contexts}, {check.CodeContextName, o.hidden}, {check.CodeKubectlVersion, o.kubectl},
		{check.CodeShadowed, o.shadows}, {check.CodeCompletion, o.completion}} {
		if !slices.Contains(o.Skip, one.code) && (!files || one.code == check.CodeShadowed) {
			area.Findings = append(area.Findings, one.look(ctx)...)
		}
	}
	return area
}

// warned returns a finding with a warning.
func warned(code, title, cause string, fix fleet.Fix) []check.Finding {
	return []check.Finding{{Code: code, Severity: check.SeverityWarning, Title: title, Cause: cause, Fix: fix}}
}

// kubectl compares the kubectl on PATH with the API server of --context.
func (o *Options) kubectl(ctx context.Context) []check.Finding {
	program := options.OnPath(o.f.UI, "kubectl")
	if program == "" {
		return nil
	}
	c, err := o.f.Cluster("")
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, kubectlTimeout)
	defer cancel()
	server, err := fleet.ServerVersion(ctx, c)
	if err != nil {
		return nil // the check of the cluster reports it
	}
	said, err := exec.CommandContext(ctx, program, "version", "--client", "-o", "json").Output()
	if err != nil {
		return nil
	}
	var client struct{ ClientVersion struct{ GitVersion string } }
	if json.Unmarshal(said, &client) != nil || suitsServer(client.ClientVersion.GitVersion, server) {
		return nil
	}
	return warned(check.CodeKubectlVersion, program+" is "+client.ClientVersion.GitVersion+", and the API server "+server,
		"kubectl works with servers that are one minor release older or newer at most",
		fleet.Advice("install kubectl "+server+" in place of "+program))
}

// suitsServer reports whether a kubectl works with an API server: their minor releases differ by
// one at most. What is no release is not judged.
func suitsServer(client, server string) bool {
	c, errC := version.ParseGeneric(client)
	s, errS := version.ParseGeneric(server)
	if errC != nil || errS != nil {
		return true
	}
	return c.Major() == s.Major() && c.Minor()+1 >= s.Minor() && c.Minor() <= s.Minor()+1
}

// completion reports a plugin that kubectl cannot complete. A program that is not run by kubectl
// needs nothing for it.
func (o *Options) completion(context.Context) []check.Finding {
	if options.OnPath(o.f.UI, plugin) == "" || options.OnPath(o.f.UI, completer) != "" {
		return nil
	}
	cause := "there is none on PATH"
	for _, dir := range options.Path(o.f.UI) {
		link := filepath.Join(dir, completer)
		if target, err := os.Readlink(link); err == nil {
			cause = link + " leads to " + target + ", which cannot be run"
			break
		}
	}
	return warned(check.CodeCompletion, "kubectl completes no words of this plugin: it does not find "+completer, cause,
		fleet.Advice("kubectl ocm completion install"))
}

// shadows finds programs on PATH that shadow commands of this plugin.
func (o *Options) shadows(context.Context) []check.Finding {
	var out []check.Finding
	for _, dir := range options.Path(o.f.UI) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if word, found := strings.CutPrefix(e.Name(), ours); found && options.IsExecutable(filepath.Join(dir, e.Name())) {
				out = append(out, warned(check.CodeShadowed,
					filepath.Join(dir, e.Name())+" runs in place of \"kubectl ocm "+strings.ReplaceAll(word, "-", " ")+"\"", "",
					fleet.Advice("rm "+ui.ShellWord(filepath.Join(dir, e.Name()))+"      unless it is wanted"))...)
			}
		}
	}
	return out
}
