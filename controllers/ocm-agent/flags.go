// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	work "github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/feedback"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Ways to register.
const (
	authCSR  = "csr"
	authAWS  = "awsirsa"
	authGRPC = "grpc"
)

// raw is what flags hold before it is checked.
type raw struct {
	urls, gates, hubs       []string
	annotations             map[string]string
	auth                    string
	hubARN, clusterARN      string
	hubSecret, legacyName   string
	timeoutSeconds          int
	grpcBootstrap, grpcFile string
}

// settingsFlags adds the flags of registration; the returned function checks
// and keeps what they say. Those that nothing serves here are known, so that the
// answer names what to do instead.
func (o *options) settingsFlags() func() error {
	s, f, r := &o.settings, o.flags, &raw{}
	f.StringVar(&s.ClusterName, "spoke-cluster-name", "", "name of the cluster on the hub; empty: the kept one, else a UUID")
	f.StringVar(&r.legacyName, "cluster-name", "", "the old name of --spoke-cluster-name")
	f.StringVar(&s.AgentName, "agent-id", "", "name of the agent; empty: the kept one, else random")
	f.StringVar(&s.BootstrapSecret, "bootstrap-kubeconfig-secret", clusterv1.SecretBootstrapHubKubeconfig, "secret with the bootstrap kubeconfig")
	f.StringArrayVar(
		&r.hubs, "bootstrap-kubeconfigs", nil,
		"secret with a bootstrap kubeconfig, or its mounted file .../<secret>/kubeconfig; twice or more, in order of preference; needs the gate MultipleHubs",
	)
	f.IntVar(
		&r.timeoutSeconds, "hub-connection-timeout-seconds", int(agent.DefaultHubTimeout.Seconds()),
		"how long the hub in use may give no sign of life before the next is tried",
	)
	f.StringVar(&r.hubSecret, "hub-kubeconfig-secret", clusterv1.SecretHubKubeconfig, "secret that keeps the access to the hub; no other name is served")
	f.DurationVar(&s.HealthPeriod, "cluster-healthcheck-period", agent.DefaultHealthPeriod, "time between looks at the own API server's health")
	f.IntVar(&s.MaxClaims, "max-custom-cluster-claims", agent.DefaultMaxClaims, "custom claims that are reported at most")
	f.StringSliceVar(&s.ReservedSuffixes, "reserved-cluster-claim-suffixes", nil, "suffixes of claims that are always reported")
	f.Int32Var(&s.CertificateSeconds, "client-cert-expiration-seconds", 0, "life of the client certificate to ask for; 0: the hub decides")
	f.StringSliceVar(&r.urls, "spoke-external-server-urls", nil, "addresses of this cluster that the hub shows")
	f.StringToStringVar(
		&r.annotations, "cluster-annotations", nil,
		"annotations of the ManagedCluster, key=value; keys start with agent.open-cluster-management.io",
	)
	f.StringSliceVar(
		&r.gates, "feature-gates", nil,
		"feature gates, Name=true|false: ClusterClaim, ClusterProperty, AddonManagement, MultipleHubs, RawFeedbackJsonString, ExecutorValidatingCaches (accepted, changes nothing)",
	)
	f.StringVar(&r.auth, "registration-auth", authCSR, "how to register; only csr is served")
	f.StringVar(
		(*string)(&s.AddOnDriver), "addon-kubeclient-registration-auth", string(addonv1alpha1.DriverTypeCSR),
		"how add-ons get access to the hub: csr or token",
	)
	f.Int64Var(&s.AddOnTokenSeconds, "addon-token-expiration-seconds", addonv1alpha1.DefaultTokenSeconds, "life of the tokens of add-ons to ask for, at least 600")
	o.workFlags()
	unserved(f, r)
	return func() error { return o.keep(r) }
}

// workFlags adds the flags of the work agent.
func (o *options) workFlags() {
	s, f := &o.settings, o.flags
	f.IntVar(&s.Workers, "workload-agent-workers", work.DefaultWorkers, "works that are worked on at once, at least 1")
	f.IntVar(
		&s.MaxRawFeedback, "max-json-raw-length", feedback.MaxRawLength,
		"longest feedback value that is a structure, in bytes, 1 to 1024; needs the gate RawFeedbackJsonString",
	)
	f.DurationVar(&s.EvictionGrace, "appliedmanifestwork-eviction-grace-period", work.DefaultGrace, "how long objects of a work that the hub forgot are kept")
	// Values are pushed when objects change, and every object is watched: there is
	// no interval and no number of watches to choose.
	f.Duration("status-sync-interval", 0, "")
	f.Int("max-feedback-watch", 0, "")
	for _, name := range []string{"status-sync-interval", "max-feedback-watch"} {
		_ = f.MarkDeprecated(name, "it has no effect: values are pushed when objects change")
	}
}

// unserved adds the flags of ways to register that are not served, hidden.
func unserved(f *pflag.FlagSet, r *raw) {
	for name, value := range map[string]*string{
		"hub-cluster-arn": &r.hubARN, "managed-cluster-arn": &r.clusterARN, "grpc-bootstrap-config": &r.grpcBootstrap, "grpc-config": &r.grpcFile,
	} {
		f.StringVar(value, name, "", "")
		_ = f.MarkHidden(name)
	}
}

// keep checks what the flags hold and makes settings of it.
func (o *options) keep(r *raw) error {
	s := &o.settings
	if err := r.served(); err != nil {
		return err
	}
	if s.ClusterName == "" {
		s.ClusterName = r.legacyName
	}
	for _, u := range r.urls {
		s.ExternalServerURLs = append(s.ExternalServerURLs, agent.ServerURL{URL: u})
	}
	s.Annotations, _ = agent.KeepAnnotations(r.annotations)
	gates, err := agent.ParseGates(r.gates)
	if err != nil {
		return err
	}
	if s.Workers < 1 {
		return fmt.Errorf("--workload-agent-workers=%d: must be 1 or more", s.Workers)
	}
	if s.EvictionGrace <= 0 {
		return fmt.Errorf("--appliedmanifestwork-eviction-grace-period=%s: must be longer than nothing", s.EvictionGrace)
	}
	if s.MaxRawFeedback < 1 || s.MaxRawFeedback > feedback.MaxRawLength {
		return fmt.Errorf("--max-json-raw-length=%d: must be 1 to %d, which is what the API allows", s.MaxRawFeedback, feedback.MaxRawLength)
	}
	s.RawFeedback = gates[agent.GateRawFeedback].Enabled
	s.Claims, s.Properties = gates[agent.GateClusterClaim].Enabled, gates[agent.GateClusterProperty].Enabled
	if s.BootstrapSecret == clusterv1.SecretBootstrapHubKubeconfig {
		s.BootstrapSecret = ""
	}
	s.AddOns = gates[agent.GateAddonManagement].Enabled
	if err := r.keepHubs(s, gates[agent.GateMultipleHubs].Enabled); err != nil {
		return err
	}
	return s.Validate()
}

// keepHubs makes names of secrets of the bootstrap kubeconfigs.
func (r *raw) keepHubs(s *agent.Settings, several bool) error {
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
				return fmt.Errorf("--bootstrap-kubeconfigs=%s: must be the name of a secret of the agent's namespace, or a path that ends in /<secret>/kubeconfig", name)
			}
			name = path.Base(path.Dir(name))
		}
		s.Hubs = append(s.Hubs, name)
	}
	s.HubTimeout = time.Duration(r.timeoutSeconds) * time.Second
	return nil
}

// served refuses what this agent does not do, and says what to do instead.
func (r *raw) served() error {
	switch {
	case r.auth == authAWS && (r.hubARN == "" || r.clusterARN == ""):
		return errors.New("--registration-auth=awsirsa needs --hub-cluster-arn and --managed-cluster-arn; moreover this agent does not serve it: register by csr")
	case r.auth == authAWS || r.auth == authGRPC:
		return fmt.Errorf("--registration-auth=%s is not served by this agent: register by csr", r.auth)
	case r.auth != "" && r.auth != authCSR:
		return fmt.Errorf("--registration-auth=%s does not exist: use csr", r.auth)
	case r.hubARN != "" || r.clusterARN != "":
		return errors.New("--hub-cluster-arn and --managed-cluster-arn belong to --registration-auth=awsirsa, which this agent does not serve")
	case r.grpcBootstrap != "" || r.grpcFile != "":
		return errors.New("--grpc-bootstrap-config and --grpc-config belong to --registration-auth=grpc, which this agent does not serve")
	case r.hubSecret != clusterv1.SecretHubKubeconfig:
		return fmt.Errorf("--hub-kubeconfig-secret=%s is not served: the access is kept in secret %s", r.hubSecret, clusterv1.SecretHubKubeconfig)
	}
	return nil
}
