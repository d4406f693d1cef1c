// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	work "github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/feedback"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Registration drivers.
const (
	authCSR  = "csr"
	authAWS  = "awsirsa"
	authGRPC = "grpc"
)

// Drivers and the places where Open Cluster Management's operator mounts secrets.
const (
	driverKube       = "kube"
	mountedBootstrap = "/spoke/bootstrap/kubeconfig"
	mountedHub       = "/spoke/hub-kubeconfig/kubeconfig"
)

// raw holds the values of flags before they are checked.
type raw struct {
	urls, gates, hubs       []string
	annotations             map[string]string
	auth                    string
	hubARN, clusterARN      string
	roleSuffix              string
	hubSecret, legacyName   string
	bootstrapFile           string
	timeoutSeconds          int
	grpcBootstrap, grpcFile string
	driver, eventsClient    string
}

// settingsFlags adds the flags of what the command runs; the returned function checks their
// values and applies them to the settings. Unsupported flags of Open Cluster Management are
// accepted too, so that the error can say what to do instead.
func (o *options) settingsFlags() func() error {
	s, f, r := &o.settings, o.flags, &raw{}
	f.StringVar(&s.ClusterName, "spoke-cluster-name", "", "name of the cluster on the hub; empty: the stored name, otherwise a UUID")
	f.StringVar(&r.legacyName, "cluster-name", "", "old alias of --spoke-cluster-name")
	f.StringVar(&s.AgentName, "agent-id", "", "name of the agent; empty: the stored name, otherwise random")
	f.StringVar(&o.spokeKubeconfig, "spoke-kubeconfig", "",
		"kubeconfig of the managed cluster if the agent runs elsewhere; its references may name files beside it")
	f.StringSliceVar(&r.gates, "feature-gates", nil, "feature gates, Name=true|false: "+strings.Join(slices.Sorted(maps.Keys(o.gates())), ", "))
	if o.registration {
		o.registrationFlags(r)
	}
	if o.works {
		o.workFlags(r)
	}
	return func() error { return o.apply(r) }
}

// registrationFlags adds the flags of the registration.
func (o *options) registrationFlags(r *raw) {
	s, f := &o.settings, o.flags
	f.StringVar(&s.BootstrapSecret, "bootstrap-kubeconfig-secret", "", "secret with the bootstrap kubeconfig; empty: "+clusterv1.SecretBootstrapHubKubeconfig)
	f.StringVar(&r.bootstrapFile, "bootstrap-kubeconfig", mountedBootstrap, "where others mount the bootstrap secret; the agent reads the secret itself")
	f.StringArrayVar(
		&r.hubs, "bootstrap-kubeconfigs", nil,
		"secret with a bootstrap kubeconfig, or its mounted file .../<secret>/kubeconfig; twice or more, in order of preference; needs the gate MultipleHubs",
	)
	f.IntVar(
		&r.timeoutSeconds, "hub-connection-timeout-seconds", int(agent.DefaultHubTimeout.Seconds()),
		"how long the hub in use may be unresponsive before the next one is tried",
	)
	f.StringVar(&r.hubSecret, "hub-kubeconfig-secret", clusterv1.SecretHubKubeconfig, "secret with the hub kubeconfig; no other name is supported")
	f.DurationVar(&s.HealthPeriod, "cluster-healthcheck-period", agent.DefaultHealthPeriod, "time between health checks of this cluster's API server")
	f.IntVar(&s.MaxClaims, "max-custom-cluster-claims", agent.DefaultMaxClaims, "maximum number of custom claims to report")
	f.StringSliceVar(&s.ReservedSuffixes, "reserved-cluster-claim-suffixes", nil, "suffixes of claims that are always reported")
	f.Int32Var(&s.CertificateSeconds, "client-cert-expiration-seconds", 0, "requested lifetime of the client certificate in seconds; 0: the hub decides")
	f.StringSliceVar(&r.urls, "spoke-external-server-urls", nil, "external API server URLs of this cluster to publish on the hub")
	f.StringToStringVar(
		&r.annotations, "cluster-annotations", nil,
		"annotations of the ManagedCluster, key=value; keys start with agent.open-cluster-management.io",
	)
	f.StringVar(&r.auth, "registration-auth", authCSR, "registration driver; only csr is supported")
	f.StringVar(
		(*string)(&s.AddOnDriver), "addon-kubeclient-registration-auth", string(addonv1alpha1.DriverTypeCSR),
		"how add-ons get access to the hub: csr or token",
	)
	f.Int64Var(
		&s.AddOnTokenSeconds, "addon-token-expiration-seconds", addonv1alpha1.DefaultTokenSeconds,
		"requested lifetime of add-on tokens in seconds, at least 600",
	)
	unsupported := map[string]*string{
		"hub-cluster-arn": &r.hubARN, "managed-cluster-arn": &r.clusterARN, "managed-cluster-role-suffix": &r.roleSuffix,
		"grpc-bootstrap-config": &r.grpcBootstrap, "grpc-config": &r.grpcFile,
	}
	for name, value := range unsupported {
		f.StringVar(value, name, "", "")
		o.hide(name)
	}
}

// workFlags adds the flags of the work agent.
func (o *options) workFlags(r *raw) {
	s, f := &o.settings, o.flags
	f.StringVar(&r.driver, "workload-source-driver", driverKube, "how works arrive; only kube is supported")
	usage := "mounted kubeconfig of the hub, with tls.crt, tls.key and cluster-name beside it"
	if o.registration {
		usage = "where others mount the hub kubeconfig; the agent reads the secret itself"
	}
	f.StringVar(&o.hubKubeconfig, "workload-source-config", mountedHub, usage)
	f.StringVar(&r.eventsClient, "cloudevents-client-id", "", "")
	f.IntVar(&s.Workers, "workload-agent-workers", work.DefaultWorkers, "number of works to process concurrently, at least 1")
	f.IntVar(
		&s.MaxRawFeedback, "max-json-raw-length", feedback.MaxRawLength,
		"maximum size of a structured feedback value, in bytes, 1 to 1024; needs the gate RawFeedbackJsonString",
	)
	f.DurationVar(
		&s.EvictionGrace, "appliedmanifestwork-eviction-grace-period", work.DefaultGrace,
		"how long to keep the objects of a work that is gone from the hub",
	)
	// Values are pushed when objects change, and every object is watched: there is no
	// interval and no number of watches to configure.
	f.Duration("status-sync-interval", 0, "")
	f.Int("max-feedback-watch", 0, "")
	f.Float32("hub-kube-api-qps", 0, "")
	f.Int("hub-kube-api-burst", 0, "")
	o.hide("status-sync-interval", "max-feedback-watch", "hub-kube-api-qps", "hub-kube-api-burst", "cloudevents-client-id")
}

// apply checks the values of the flags and applies them to the settings.
func (o *options) apply(r *raw) error {
	s := &o.settings
	s.ClusterName = cmp.Or(s.ClusterName, r.legacyName)
	gates, err := agent.ParseGates(o.gates(), r.gates)
	if err != nil {
		return err
	}
	if o.works {
		s.RawFeedback = gates[agent.GateRawFeedback].Enabled
		if err := r.applyWorks(s); err != nil {
			return err
		}
	}
	if !o.registration {
		s.HealthPeriod = agent.DefaultHealthPeriod
		return s.Validate()
	}
	if err := r.checkSupported(); err != nil {
		return err
	}
	if r.bootstrapFile != mountedBootstrap && s.BootstrapSecret == "" {
		return fmt.Errorf("--bootstrap-kubeconfig=%s: the agent reads no file but a secret: name it in --bootstrap-kubeconfig-secret", r.bootstrapFile)
	}
	s.BootstrapSecret = cmp.Or(s.BootstrapSecret, clusterv1.SecretBootstrapHubKubeconfig)
	for _, u := range r.urls {
		s.ExternalServerURLs = append(s.ExternalServerURLs, agent.ServerURL{URL: u})
	}
	s.Annotations = agent.KeepAnnotations(r.annotations)
	s.Claims, s.Properties = gates[agent.GateClusterClaim].Enabled, gates[agent.GateClusterProperty].Enabled
	s.AddOns, s.Proxy = gates[agent.GateAddonManagement].Enabled, gates[agent.GateClusterProxy].Enabled
	if err := r.applyHubs(s, gates[agent.GateMultipleHubs].Enabled); err != nil {
		return err
	}
	return s.Validate()
}

// applyWorks checks the settings of the work agent.
func (r *raw) applyWorks(s *agent.Settings) error {
	switch {
	case r.driver != driverKube:
		return fmt.Errorf("--workload-source-driver=%s is not supported by this agent: use kube", r.driver)
	case r.eventsClient != "":
		return errors.New("--cloudevents-client-id belongs to the workload source drivers mqtt and grpc, which this agent does not support")
	case s.Workers < 1:
		return fmt.Errorf("--workload-agent-workers=%d: must be 1 or more", s.Workers)
	case s.EvictionGrace <= 0:
		return fmt.Errorf("--appliedmanifestwork-eviction-grace-period=%s: must be greater than 0", s.EvictionGrace)
	case s.MaxRawFeedback < 1 || s.MaxRawFeedback > feedback.MaxRawLength:
		return fmt.Errorf("--max-json-raw-length=%d: must be 1 to %d, as the API requires", s.MaxRawFeedback, feedback.MaxRawLength)
	}
	return nil
}

// applyHubs sets the hubs from the secret names or paths in --bootstrap-kubeconfigs.
func (r *raw) applyHubs(s *agent.Settings, several bool) error {
	switch {
	case !several && len(r.hubs) > 0:
		return errors.New("--bootstrap-kubeconfigs needs --feature-gates=MultipleHubs=true")
	case !several:
		return nil
	case len(r.hubs) < 2:
		return fmt.Errorf("--bootstrap-kubeconfigs: %d given, the gate MultipleHubs needs two or more", len(r.hubs))
	}
	for _, name := range r.hubs {
		if strings.Contains(name, "/") {
			if path.Base(name) != clusterv1.SecretKeyKubeconfig {
				return fmt.Errorf("--bootstrap-kubeconfigs=%s: must be the name of a secret in the agent's namespace, or a path that ends in /<secret>/kubeconfig", name)
			}
			name = path.Base(path.Dir(name))
		}
		s.Hubs = append(s.Hubs, name)
	}
	s.HubTimeout = time.Duration(r.timeoutSeconds) * time.Second
	return nil
}

// checkSupported returns an error for what this agent does not support, with what to do
// instead.
func (r *raw) checkSupported() error {
	switch {
	case r.auth == authAWS && (r.hubARN == "" || r.clusterARN == ""):
		return errors.New("--registration-auth=awsirsa needs --hub-cluster-arn and --managed-cluster-arn, and is not supported by this agent: use csr")
	case r.auth == authAWS || r.auth == authGRPC:
		return fmt.Errorf("--registration-auth=%s is not supported by this agent: use csr", r.auth)
	case r.auth != "" && r.auth != authCSR:
		return fmt.Errorf("--registration-auth=%s does not exist: use csr", r.auth)
	case r.hubARN != "" || r.clusterARN != "" || r.roleSuffix != "":
		return errors.New("--hub-cluster-arn, --managed-cluster-arn and --managed-cluster-role-suffix belong to " +
			"--registration-auth=awsirsa, which this agent does not support")
	case r.grpcBootstrap != "" || r.grpcFile != "":
		return errors.New("--grpc-bootstrap-config and --grpc-config belong to --registration-auth=grpc, which this agent does not support")
	case r.hubSecret != clusterv1.SecretHubKubeconfig:
		return fmt.Errorf("--hub-kubeconfig-secret=%s is not supported: the hub kubeconfig is kept in secret %s", r.hubSecret, clusterv1.SecretHubKubeconfig)
	}
	return nil
}
