// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"strconv"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"github.com/kubectl-ocm/kubectl-ocm/internal/packed"
)

// Pack is a Seen in 48 bytes instead of some 300, for keeping one for each object of a
// cluster.
type Pack struct {
	uid     [16]byte
	version uint64
	fields  digest.Sum
	shared  unique.Handle[shared]
}

// shared is what the objects of one work have in common.
type shared struct {
	owner    types.UID
	manager  string
	deleting bool
	// odd is the Seen where it does not fit: it has several owners or managers, or names
	// of another form.
	odd *Seen
}

// Packed returns s in compact form.
func (s Seen) Packed() Pack {
	version, err := strconv.ParseUint(s.Version, 10, 64)
	id, isID := packed.BinaryUID(s.UID)
	if err != nil || strconv.FormatUint(version, 10) != s.Version || !isID || len(s.owners) > 1 || slices.Contains(s.owners, "") || len(s.fields) > 1 {
		whole := s // so that the usual s needs no memory of its own
		return Pack{shared: unique.Make(shared{odd: &whole})}
	}
	p, common := Pack{uid: id, version: version}, shared{deleting: s.Deleting}
	if len(s.owners) == 1 {
		common.owner = s.owners[0]
	}
	if len(s.fields) == 1 {
		common.manager, p.fields = s.fields[0].manager, s.fields[0].digest
	}
	p.shared = unique.Make(common)
	return p
}

// Seen returns what was packed.
func (p Pack) Seen() Seen {
	if p == (Pack{}) {
		return Seen{}
	}
	common := p.shared.Value()
	if common.odd != nil {
		return *common.odd
	}
	s := Seen{UID: packed.TextUID(p.uid), Version: strconv.FormatUint(p.version, 10), Deleting: common.deleting}
	if common.owner != "" {
		s.owners = []types.UID{common.owner}
	}
	if common.manager != "" {
		s.fields = []held{{common.manager, p.fields}}
	}
	return s
}
