// SPDX-License-Identifier: Apache-2.0

package options

import (
	"regexp"
	"sync"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// warnings shows what API servers warn of, each text once. What only the authors of a
// kind or of a program can act on is left out: people cannot change which version of an
// API this program speaks.
type warnings struct {
	u  *ui.UI
	mu sync.Mutex
	// told are the texts that were shown.
	told map[string]bool
}

// forAuthors finds the warnings that are for the authors of programs.
var forAuthors = regexp.MustCompile(`(?i)\bdeprecated\b|unavailable in v\d|domain-qualified finalizer|unrecognized format`)

// HandleWarningHeader takes one warning of an API server; 299 is the code of them all.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	if code != 299 || text == "" || forAuthors.MatchString(text) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.told[text] {
		return
	}
	if w.told == nil {
		w.told = map[string]bool{}
	}
	w.told[text] = true
	w.u.Warn("%s", text)
}
