// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
)

// New returns the command "placement".
func New(f *options.Factory) *cobra.Command {
	cmd := options.Group(&cobra.Command{Use: "placement", Aliases: []string{"placements"}, Short: "Select managed clusters, and see why each is selected or not"})
	cmd.AddCommand(newList(f), newCreate(f), newExplain(f), newSimulate(f), newDelete(f))
	return cmd
}

// resource is the prefix of placements under -o name.
const resource = "placement." + clusterv1beta1.GroupName + "/"

// parseKeys parses names of placements: NAME in the current namespace, or
// NAMESPACE/NAME.
func parseKeys(f *options.Factory, names []string) ([]types.NamespacedName, error) {
	namespace := f.Namespace()
	var out []types.NamespacedName
	for _, name := range names {
		key, err := placement.ParseName(name, namespace)
		if err != nil {
			return nil, err
		}
		out = append(out, key)
	}
	return out, nil
}
