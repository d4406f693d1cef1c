// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/internal/image"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// addUnsupported adds what the agent supports, but not in this layout, which creates no
// Deployment. The agent runs in namespace.
func addUnsupported(r *settings.Asked, s operatorv1.KlusterletSpec, namespace string) {
	mode := s.DeployOption.Mode
	r.AddUnsupported(mode == operatorv1.InstallModeHosted || mode == operatorv1.InstallModeSingletonHosted, "deployOption.mode "+string(mode))
	for field, asked := range map[string]string{
		"imagePullSpec": s.ImagePullSpec, "registrationImagePullSpec": s.RegistrationImagePullSpec, "workImagePullSpec": s.WorkImagePullSpec,
	} {
		r.AddUnsupported(image.Chosen(asked, "") != "", field)
	}
	r.AddUnsupported(s.HubAPIServerHostAlias != nil, "hubApiServerHostAlias")
	r.AddUnsupported(
		s.ResourceRequirement != nil && s.ResourceRequirement.Type != "" && s.ResourceRequirement.Type != operatorv1.ResourceQosClassDefault,
		"resourceRequirement",
	)
	r.AddUnsupported(s.Namespace != "" && s.Namespace != namespace, "namespace (install the agent there)")
	slices.Sort(r.Unsupported)
}
