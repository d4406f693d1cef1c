// SPDX-License-Identifier: Apache-2.0

package check

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for findings.
const (
	// AcceptAnew gives a name to a cluster that was reinstalled, or keeps it.
	AcceptAnew fleet.RemedyCode = "check.AcceptAnew"
	// AcceptOnHub accepts the request of an agent on its hub.
	AcceptOnHub fleet.RemedyCode = "check.AcceptOnHub"
	// AllowTokens allows the hub to create tokens for add-ons.
	AllowTokens fleet.RemedyCode = "check.AllowTokens"
	// ApproveRequest inspects a certificate request and approves it.
	ApproveRequest fleet.RemedyCode = "check.ApproveRequest"
	// CheckAsAdmin checks the hub with all rights.
	CheckAsAdmin fleet.RemedyCode = "check.CheckAsAdmin"
	// CheckCluster checks a cluster.
	CheckCluster fleet.RemedyCode = "check.CheckCluster"
	// CheckPlacement checks a placement.
	CheckPlacement fleet.RemedyCode = "check.CheckPlacement"
	// CheckSpoke checks an agent, on its cluster.
	CheckSpoke fleet.RemedyCode = "check.CheckSpoke"
	// CorrectHost corrects which cluster hosts an add-on.
	CorrectHost fleet.RemedyCode = "check.CorrectHost"
	// CreatePlacement creates a placement.
	CreatePlacement fleet.RemedyCode = "check.CreatePlacement"
	// CreateVersion creates a version of an add-on.
	CreateVersion fleet.RemedyCode = "check.CreateVersion"
	// DeleteInstance deletes an add-on on a cluster.
	DeleteInstance fleet.RemedyCode = "check.DeleteInstance"
	// DropCertificate makes an agent request another certificate.
	DropCertificate fleet.RemedyCode = "check.DropCertificate"
	// ExplainPlacement shows why a placement selects what it does.
	ExplainPlacement fleet.RemedyCode = "check.ExplainPlacement"
	// FindController checks whether the controller of an add-on runs.
	FindController fleet.RemedyCode = "check.FindController"
	// GiveUpHook inspects the hook of an add-on and gives it up.
	GiveUpHook fleet.RemedyCode = "check.GiveUpHook"
	// JoinByAddress uses another address of the hub to join clusters.
	JoinByAddress fleet.RemedyCode = "check.JoinByAddress"
	// LeaveToHub has the hub install an add-on.
	LeaveToHub fleet.RemedyCode = "check.LeaveToHub"
	// ListAllWorks lists the works of all clusters.
	ListAllWorks fleet.RemedyCode = "check.ListAllWorks"
	// ListByStatus lists the clusters that are in a state.
	ListByStatus fleet.RemedyCode = "check.ListByStatus"
	// ListRequests lists certificate requests.
	ListRequests fleet.RemedyCode = "check.ListRequests"
	// ListScores lists the scores of add-ons.
	ListScores fleet.RemedyCode = "check.ListScores"
	// MoveAgent joins again when the hub has moved.
	MoveAgent fleet.RemedyCode = "check.MoveAgent"
	// PublishAddress has the hub publish an address that clusters can reach.
	PublishAddress fleet.RemedyCode = "check.PublishAddress"
	// PutNameBack restores the name of a cluster in its klusterlet.
	PutNameBack fleet.RemedyCode = "check.PutNameBack"
	// ReadController reads the logs of an add-on's controller.
	ReadController fleet.RemedyCode = "check.ReadController"
	// RegisterAddOn registers an add-on, or deletes it.
	RegisterAddOn fleet.RemedyCode = "check.RegisterAddOn"
	// RemoveGone removes a cluster that is gone for good.
	RemoveGone fleet.RemedyCode = "check.RemoveGone"
	// ResumeRollout resumes a rollout.
	ResumeRollout fleet.RemedyCode = "check.ResumeRollout"
	// ShowAgent shows the agent of an add-on on its cluster.
	ShowAgent fleet.RemedyCode = "check.ShowAgent"
	// ShowMissingRights shows what grants an add-on the rights that it lacks.
	ShowMissingRights fleet.RemedyCode = "check.ShowMissingRights"
	// ShowSigner checks whether certificates are signed again.
	ShowSigner fleet.RemedyCode = "check.ShowSigner"
	// ShowTree shows the objects of a work.
	ShowTree fleet.RemedyCode = "check.ShowTree"
	// ShowYAML shows a whole object.
	ShowYAML fleet.RemedyCode = "check.ShowYAML"
	// TryTemplate tries a corrected template.
	TryTemplate fleet.RemedyCode = "check.TryTemplate"
)
