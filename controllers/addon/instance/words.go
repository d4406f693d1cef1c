// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"strings"
	"sync"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// Bounds of words: longer texts are rarely shared, and when there are too many, all are
// dropped and collected again.
const (
	maxWord  = 512
	maxWords = 8192
)

// words holds one copy of each text that many objects share. The zero value is ready to use.
type words struct {
	mu   sync.Mutex
	held map[string]string
}

// of returns a text equal to s that shares no memory with the text that s is part of.
func (w *words) of(s string) string {
	if s == "" {
		return ""
	}
	if len(s) > maxWord {
		return strings.Clone(s)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if have, ok := w.held[s]; ok {
		return have
	}
	if w.held == nil || len(w.held) >= maxWords {
		w.held = map[string]string{}
	}
	s = strings.Clone(s)
	w.held[s] = s
	return s
}

func (w *words) kind(k addonv1alpha1.ConfigGroupResource) addonv1alpha1.ConfigGroupResource {
	return addonv1alpha1.ConfigGroupResource{Group: w.of(k.Group), Resource: w.of(k.Resource)}
}

func (w *words) referent(r addonv1alpha1.ConfigReferent) addonv1alpha1.ConfigReferent {
	return addonv1alpha1.ConfigReferent{Namespace: w.of(r.Namespace), Name: w.of(r.Name)}
}

func (w *words) hashed(h *addonv1alpha1.ConfigSpecHash) *addonv1alpha1.ConfigSpecHash {
	if h == nil {
		return nil
	}
	return &addonv1alpha1.ConfigSpecHash{ConfigReferent: w.referent(h.ConfigReferent), SpecHash: w.of(h.SpecHash)}
}
