// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/image"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// values are those of the agent's chart that an import can have.
type values struct {
	Images struct {
		Registry        string            `json:"registry"`
		Tag             string            `json:"tag"`
		ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy"`
		Overrides       struct {
			OperatorImage string `json:"operatorImage"`
		} `json:"overrides"`
	} `json:"images"`
	AgentRights            string `json:"agentRights"`
	BootstrapHubKubeConfig string `json:"bootstrapHubKubeConfig"`
	PriorityClassName      string `json:"priorityClassName"`
	Klusterlet             struct {
		ClusterName               string                                `json:"clusterName"`
		ExternalServerURLs        []operatorv1.ServerURL                `json:"externalServerURLs"`
		NodePlacement             operatorv1.NodePlacement              `json:"nodePlacement"`
		RegistrationConfiguration *operatorv1.RegistrationConfiguration `json:"registrationConfiguration"`
		WorkConfiguration         *operatorv1.WorkAgentConfiguration    `json:"workConfiguration"`
	} `json:"klusterlet"`
}

// parseValues reads values.yaml. Its errors name fields and never quote a value, which may be
// a secret.
func parseValues(text []byte) (v values, err error) {
	raw, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return v, errors.New("it is not valid YAML")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&v)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return v, fmt.Errorf("%s must be of type %s", wrong.Field, wrong.Type)
	case err != nil && strings.HasPrefix(err.Error(), "json: unknown field"):
		return v, fmt.Errorf("an import has no value%s", strings.TrimPrefix(err.Error(), "json: unknown field"))
	case err != nil:
		return v, errors.New("it does not have the form of the agent's values")
	}
	if v.AgentRights != "" && v.AgentRights != "default" && v.AgentRights != "narrow" {
		return v, errors.New("agentRights must be default or narrow")
	}
	if v.BootstrapHubKubeConfig != "" {
		if _, err := kubeconfig.Parse([]byte(v.BootstrapHubKubeConfig)); err != nil {
			return v, fmt.Errorf("bootstrapHubKubeConfig: %w", err)
		}
	}
	return v, nil
}

// options returns what to install under a name, with the usual image of the agent unless values
// name another.
func (v values) options(cluster, usual string) (agent.Options, error) {
	if name := v.Klusterlet.ClusterName; name != "" && name != cluster {
		return agent.Options{}, fmt.Errorf("klusterlet.clusterName must be %s or left out", cluster)
	}
	repository, tag := image.Split(usual)
	if v.Images.Registry != "" {
		repository = strings.TrimSuffix(v.Images.Registry, "/") + "/" + agentImage
	}
	o := agent.Options{
		Image:       cmp.Or(v.Images.Overrides.OperatorImage, repository+":"+cmp.Or(v.Images.Tag, tag)),
		ClusterName: cluster, ImagePullPolicy: v.Images.ImagePullPolicy, NarrowRights: v.AgentRights == "narrow",
		Spec: operatorv1.KlusterletSpec{
			ExternalServerURLs: v.Klusterlet.ExternalServerURLs, NodePlacement: v.Klusterlet.NodePlacement, PriorityClassName: v.PriorityClassName,
			RegistrationConfiguration: v.Klusterlet.RegistrationConfiguration, WorkConfiguration: v.Klusterlet.WorkConfiguration,
		},
	}
	if v.BootstrapHubKubeConfig != "" {
		o.BootstrapKubeconfig = []byte(v.BootstrapHubKubeConfig)
	}
	return o, nil
}

// Names of the images.
const (
	hubImage   = "ocm-hub"
	agentImage = "ocm-agent"
)

// imageBeside returns the image of the agent in the registry and of the version that the hub's
// own image has; own is that of the hub's release if the image has another name.
func imageBeside(hubs, own string) string {
	repository, tag := image.Split(hubs)
	if registry, ok := strings.CutSuffix(repository, "/"+hubImage); ok && tag != "" {
		return registry + "/" + agentImage + ":" + tag
	}
	return "ghcr.io/kubectl-ocm/" + agentImage + ":" + own
}
