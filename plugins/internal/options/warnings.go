// SPDX-License-Identifier: Apache-2.0

package options

import (
	"regexp"
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
	shown map[string]bool
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
	if w.shown[text] {
		return
	}
	if w.shown == nil {
		w.shown = map[string]bool{}
	}
	w.shown[text] = true
	w.u.Warn("%s", text)
}
