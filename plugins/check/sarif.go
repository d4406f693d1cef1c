// SPDX-License-Identifier: Apache-2.0

package check

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/internal/version"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// Schema and version of the format that code scanners read.
const (
	sarifSchema  = "https://json.schemastore.org/sarif-2.1.0.json"
	sarifVersion = "2.1.0"
)

type object = map[string]any

// printSarif prints what was found as SARIF: the catalogue as rules, and a result for each
// finding, whose place is its area.
func printSarif(u *ui.UI, report check.Report) error {
	rules, results := []object{}, []object{}
	for _, e := range catalogue {
		rules = append(rules, object{"id": e.Code, "shortDescription": text(e.Title), "fullDescription": text(e.Text), "help": text(u.Own(e.fix()))})
	}
	for _, area := range report.Areas {
		for _, f := range area.Findings {
			if f.Severity == check.SeverityOK {
				continue
			}
			var parts []string
			for _, part := range []string{f.Title, f.Cause, u.Own(ui.Fix(f.Fix))} {
				if part != "" {
					parts = append(parts, part)
				}
			}
			results = append(results, object{"ruleId": f.Code, "level": string(f.Severity), "message": text(strings.Join(parts, "; ")),
				"locations": []object{{"logicalLocations": []object{{"fullyQualifiedName": area.Name}}}}})
		}
	}
	raw, err := json.MarshalIndent(object{"$schema": sarifSchema, "version": sarifVersion, "runs": []object{{
		"tool":    object{"driver": object{"name": "kubectl-ocm", "semanticVersion": strings.TrimPrefix(version.Get(), "v"), "rules": rules}},
		"results": results,
	}}}, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding findings: %w", err)
	}
	u.Say("%s", raw)
	return nil
}

func text(s string) object { return object{"text": s} }
