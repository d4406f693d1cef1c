// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/hex"
	"slices"
	"strconv"
	"unique"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"k8s.io/apimachinery/pkg/types"
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
	id, isID := binaryUID(s.UID)
	if err != nil || strconv.FormatUint(version, 10) != s.Version || !isID || len(s.owners) > 1 || slices.Contains(s.owners, "") || len(s.fields) > 1 {
		whole := s
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
	s := Seen{UID: textUID(p.uid), Version: strconv.FormatUint(p.version, 10), Deleting: common.deleting}
	if common.owner != "" {
		s.owners = []types.UID{common.owner}
	}
	if common.manager != "" {
		s.fields = []held{{common.manager, p.fields}}
	}
	return s
}

// The positions of the dashes of a UID in its usual form, and its length.
const (
	dash1, dash2, dash3, dash4 = 8, 13, 18, 23
	uidLength                  = 36
)

// binaryUID returns the 16 bytes of a UID of the usual form; false for any other form.
func binaryUID(uid types.UID) (out [16]byte, ok bool) {
	if len(uid) != uidLength {
		return out, false
	}
	digits := string(uid[:dash1] + uid[dash1+1:dash2] + uid[dash2+1:dash3] + uid[dash3+1:dash4] + uid[dash4+1:])
	if _, err := hex.Decode(out[:], []byte(digits)); err != nil {
		return out, false
	}
	return out, textUID(out) == uid
}

func textUID(id [16]byte) types.UID {
	const group1, group2, group3, group4 = 4, 6, 8, 10
	text := make([]byte, 0, uidLength)
	text = append(hex.AppendEncode(text, id[:group1]), '-')
	text = append(hex.AppendEncode(text, id[group1:group2]), '-')
	text = append(hex.AppendEncode(text, id[group2:group3]), '-')
	text = append(hex.AppendEncode(text, id[group3:group4]), '-')
	return types.UID(hex.AppendEncode(text, id[group4:]))
}
