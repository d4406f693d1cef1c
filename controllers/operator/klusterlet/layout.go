// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/internal/image"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// addUnsupported adds what the agent supports, but not in this layout, which creates no
// Deployment. The agent runs in namespace, in pod, which is nil when it runs in none.
func addUnsupported(r *settings.Asked, s operatorv1.KlusterletSpec, namespace string, pod *shared.Pod) {
	mode := s.DeployOption.Mode
	r.AddUnsupported(mode.IsHosted(), "deployOption.mode "+string(mode))
	for field, asked := range map[string]string{
		"imagePullSpec": s.ImagePullSpec, "registrationImagePullSpec": s.RegistrationImagePullSpec, "workImagePullSpec": s.WorkImagePullSpec,
	} {
		r.AddUnsupported(image.Chosen(asked, "") != "", field)
	}
	r.AddUnsupported(s.HubAPIServerHostAlias != nil, "hubApiServerHostAlias")
	for _, field := range pod.Lacks(s.NodePlacement, s.PriorityClassName, s.ResourceRequirement) {
		r.AddUnsupported(true, field+" (the Deployment of the agent is its installer's: repeat kubectl ocm join, which changes it)")
	}
	if c := s.RegistrationConfiguration; c != nil {
		r.AddUnsupported(isRate(c.KubeAPIQPS, c.KubeAPIBurst), "registrationConfiguration.kubeAPIQPS and kubeAPIBurst")
	}
	if c := s.WorkConfiguration; c != nil {
		r.AddUnsupported(isRate(c.KubeAPIQPS, c.KubeAPIBurst), "workConfiguration.kubeAPIQPS and kubeAPIBurst")
		r.AddUnsupported(isRate(c.HubKubeAPIQPS, c.HubKubeAPIBurst), "workConfiguration.hubKubeAPIQPS and hubKubeAPIBurst")
		r.AddUnsupported(c.StatusSyncInterval != nil, "workConfiguration.statusSyncInterval")
	}
	r.AddUnsupported(s.Namespace != "" && s.Namespace != namespace, "namespace (install the agent there)")
	slices.Sort(r.Unsupported)
}

// isRate reports whether a rate of requests is asked for that is not the one which the API fills in.
func isRate(qps, burst int32) bool { return qps != 0 && qps != 50 || burst != 0 && burst != 100 }
