// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// importRule restricts what packages may import. A pattern matches the package with that
// path; with "/..." at its end also everything below it. Paths that start with "./" are
// below the root.
type importRule struct {
	// Packages are the packages that the rule applies to, except Except.
	Packages, Except []string
	// Forbidden may not be imported, not even indirectly.
	Forbidden []string
	// Only, if set, lists everything outside the standard library that may be imported
	// directly.
	Only []string
	// Why is printed with a finding.
	Why string
}

// importRules is the architecture as imports.
var importRules = []importRule{{
	Packages: []string{"./controllers/...", "./pkg/...", "./internal/..."},
	Except:   []string{"./pkg/addonkit/helm", "./pkg/fleet/..."},
	Forbidden: []string{
		"k8s.io/client-go/kubernetes/...", "k8s.io/client-go/informers/...", "k8s.io/client-go/restmapper", "k8s.io/client-go/tools/record",
		"k8s.io/client-go/tools/leaderelection/...", "sigs.k8s.io/controller-runtime/...",
	},
	Why: "hub and agent stay small: dynamic client and reflectors only (docs/adr/0001)",
}, {
	Packages:  []string{"./pkg/fleet/..."},
	Forbidden: []string{"k8s.io/client-go/kubernetes", "sigs.k8s.io/controller-runtime/...", "github.com/spf13/cobra", "./plugins/..."},
	Why:       "the library works on the dynamic client, without a terminal",
}, {
	Packages:  []string{"./pkg/fleet/..."},
	Except:    []string{"./pkg/fleet/check", "./pkg/fleet/report"},
	Forbidden: []string{"./pkg/fleet/check"},
	Why:       "check and report read what the others write; none of them needs it",
}, {
	Packages: []string{
		"./pkg/fleet", "./pkg/fleet/write", "./pkg/fleet/manifest", "./pkg/fleet/naming", "./pkg/fleet/trust",
		"./pkg/fleet/request", "./pkg/fleet/workload", "./pkg/fleet/gate",
	},
	Forbidden: []string{
		"./pkg/fleet/hub", "./pkg/fleet/join", "./pkg/fleet/accept", "./pkg/fleet/unjoin", "./pkg/fleet/cluster", "./pkg/fleet/clusterset",
		"./pkg/fleet/placement", "./pkg/fleet/work", "./pkg/fleet/trace", "./pkg/fleet/addon", "./pkg/fleet/token",
	},
	Why: "jobs import what they share, not the other way round",
}, {
	Packages:  []string{"./pkg/fleet/await", "./pkg/fleet/teardown"},
	Forbidden: []string{"./pkg/fleet"},
	Why:       "hub and agent use these packages, and nothing else of the plugin's library",
}, {
	Packages:  []string{"./pkg/...", "./internal/...", "./config/..."},
	Forbidden: []string{"./plugins/...", "./controllers/...", "./examples/...", "./test/...", "./tools/..."},
	Why:       "libraries do not know the programs that use them",
}, {
	Packages: []string{"./plugins/..."},
	Forbidden: []string{
		"./controllers/ocm-hub/...", "./controllers/ocm-agent/...", "./test/harness", "./test/harness/nodes/...", "./test/integration/...",
		"./test/fakefleet/...", "./tools/...", "sigs.k8s.io/controller-runtime/...", "k8s.io/client-go/kubernetes", "k8s.io/client-go/informers/...",
	},
	Why: "the plugin is small and runs no control loops; of the machinery for tests it has the playground, for dev up",
}, {
	Packages:  []string{"./plugins/..."},
	Except:    []string{"./plugins/dev", "./plugins/app", "./plugins/kubectl-ocm"},
	Forbidden: []string{"./test/..."},
	Why:       "only the commands of dev know the playground",
}, {
	Packages:  []string{"./pkg/addonkit/...", "./examples/helloworld-addon"},
	Except:    []string{"./pkg/addonkit/helm"},
	Forbidden: []string{"k8s.io/client-go/kubernetes", "sigs.k8s.io/controller-runtime/..."},
	Why:       "agents of add-ons are small, and their authors bring their own libraries",
}, {
	Packages:  []string{"./..."},
	Except:    []string{"./pkg/addonkit/helm", "./test/install", "./tools/chart"},
	Forbidden: []string{"helm.sh/helm/v4/..."},
	Why:       "Helm is large, and only authors of chart add-ons link it",
}, {
	Packages:  []string{"./..."},
	Forbidden: []string{"github.com/operator-framework/api/..."},
	Why:       "only tests validate bundles",
}, {
	Packages: []string{"./pkg/apis/..."},
	Only:     []string{"./pkg/apis/...", "k8s.io/apimachinery/...", "k8s.io/api/..."},
	Why:      "the API types must be able to become a module of their own",
}}

// listedPackage is the output of "go list -json" for one package.
type listedPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
	Module     *struct {
		Path string
		Main bool
	}
}

// goList lists packages as they are built for Linux on amd64 without cgo, whatever this
// machine is.
func goList(ctx context.Context, root string, args ...string) ([]listedPackage, error) {
	arguments := append([]string{"list", "-e=false", "-json=ImportPath,Standard,Imports,Deps,Module"}, args...)
	cmd := exec.CommandContext(ctx, "go", arguments...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("listing packages %s: %w", strings.Join(args, " "), err)
	}
	var packages []listedPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the list of packages: %w", err)
		}
		packages = append(packages, p)
	}
}

// forbiddenImports counts the packages that follow the rules.
func forbiddenImports(ctx context.Context, root string, rules []importRule) (figure, error) {
	packages, err := goList(ctx, root, "-deps", "./...")
	if err != nil {
		return figure{}, err
	}
	standard := map[string]bool{}
	main := ""
	for _, p := range packages {
		standard[p.ImportPath] = p.Standard
		if p.Module != nil && p.Module.Main {
			main = p.Module.Path
		}
	}
	var findings []finding
	total := 0
	for _, r := range rules {
		for _, p := range packages {
			if !matches(main, r.Packages, p.ImportPath) || matches(main, r.Except, p.ImportPath) {
				continue
			}
			total++
			if bad := r.broken(main, p, standard); len(bad) > 0 {
				findings = append(findings, finding{
					File: strings.TrimPrefix(p.ImportPath, main+"/"),
					Text: fmt.Sprintf("imports %s: %s", strings.Join(bad, ", "), r.Why),
				})
			}
		}
	}
	return share("import rules", total, findings), nil
}

// broken returns the imports of a package that violate the rule.
func (r importRule) broken(main string, p listedPackage, standard map[string]bool) []string {
	var bad []string
	for _, d := range p.Deps {
		if matches(main, r.Forbidden, d) {
			bad = append(bad, d)
		}
	}
	if r.Only == nil {
		return bad
	}
	for _, i := range p.Imports {
		if !standard[i] && !matches(main, r.Only, i) {
			bad = append(bad, i)
		}
	}
	return bad
}

// matches reports whether any of the patterns matches an import path of the module main.
func matches(main string, patterns []string, importPath string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if below, ok := strings.CutPrefix(pattern, "./"); ok {
			pattern = main + "/" + below
		}
		prefix, tree := strings.CutSuffix(pattern, "/...")
		return importPath == prefix || (tree && strings.HasPrefix(importPath, prefix+"/"))
	})
}
