// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

func TestWhatIsPackedComesOutAsItWas(t *testing.T) {
	const uid = "0f5c7a52-91b6-4c35-8a4e-0123456789ab"
	one := digest.Sum{1, 2, 3}
	for name, s := range map[string]Seen{
		"nothing": {},
		"plain":   {UID: uid, Version: "42"},
		"ours": {
			UID:      uid,
			Version:  "42",
			Deleting: true,
			owners:   []types.UID{"o"},
			fields:   []held{{"work-agent", one}},
		},
		"no manager":             {UID: uid, Version: "18446744073709551615", owners: []types.UID{"o"}},
		"several owners":         {UID: uid, Version: "1", owners: []types.UID{"o", "p"}},
		"an owner without a UID": {UID: uid, Version: "1", owners: []types.UID{""}},
		"several managers": {
			UID:     uid,
			Version: "1",
			fields: []held{{
				"work-agent",
				one,
			}, {
				"work-agent-x",
				digest.Sum{},
			}},
		},
		"odd version":        {UID: uid, Version: "007"},
		"version too large":  {UID: uid, Version: "18446744073709551616"},
		"odd UID":            {UID: "somebody", Version: "1"},
		"UID in capitals":    {UID: "0F5C7A52-91B6-4C35-8A4E-0123456789AB", Version: "1"},
		"UID without dashes": {UID: "0f5c7a52x91b6-4c35-8a4e-0123456789ab", Version: "1"},
		"UID of no digits":   {UID: "zzzzzzzz-91b6-4c35-8a4e-0123456789ab", Version: "1"},
	} {
		require.Equal(t, s, s.Packed().Seen(), name)
	}
	require.Equal(t, Seen{}, Pack{}.Seen())
	require.Nil(
		t,
		Seen{UID: uid, Version: "42", owners: []types.UID{"o"}, fields: []held{{"work-agent", one}}}.Packed().shared.Value().odd,
		"the usual form takes little space",
	)
}
