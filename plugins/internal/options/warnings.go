// SPDX-License-Identifier: Apache-2.0

package options

import (
	"regexp"
	"slices"
	"sync"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// warnings prints the warnings of API servers, each text once. Warnings that only the
// authors of a kind or of a program can act on are left out: users cannot change which
// version of an API this program uses.
type warnings struct {
	u  *ui.UI
	mu sync.Mutex
	// shown has the texts that were printed.
	shown []string
}

// forAuthors matches the warnings that are for the authors of programs.
var forAuthors = regexp.MustCompile(`(?i)\bdeprecated\b|unavailable in v\d|domain-qualified finalizer|unrecognized format`)

// HandleWarningHeader handles one warning of an API server; they all have the code 299.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	if code != 299 || text == "" || forAuthors.MatchString(text) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.shown, text) {
		w.shown = append(w.shown, text)
		w.u.Warn("%s", text)
	}
}
