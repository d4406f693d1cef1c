// SPDX-License-Identifier: Apache-2.0

package check

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps with what is found.
const (
	// AcceptAnew gives a name to a cluster that was installed again, or keeps it.
	AcceptAnew fleet.RemedyCode = "check.AcceptAnew"
	// AcceptOnHub answers the request of an agent on its hub.
	AcceptOnHub fleet.RemedyCode = "check.AcceptOnHub"
	// AllowTokens lets the hub make tokens for add-ons.
	AllowTokens fleet.RemedyCode = "check.AllowTokens"
	// ApproveRequest looks at a certificate request, and approves it.
	ApproveRequest fleet.RemedyCode = "check.ApproveRequest"
	// CheckAsAdmin checks the hub with all rights.
	CheckAsAdmin fleet.RemedyCode = "check.CheckAsAdmin"
	// CheckCluster looks for what is wrong with a cluster.
	CheckCluster fleet.RemedyCode = "check.CheckCluster"
	// CheckPlacement looks for what is wrong with a placement.
	CheckPlacement fleet.RemedyCode = "check.CheckPlacement"
	// CheckSpoke looks for what is wrong with an agent, on its cluster.
	CheckSpoke fleet.RemedyCode = "check.CheckSpoke"
	// CorrectHost corrects which cluster hosts an add-on.
	CorrectHost fleet.RemedyCode = "check.CorrectHost"
	// CreatePlacement makes a placement.
	CreatePlacement fleet.RemedyCode = "check.CreatePlacement"
	// CreateVersion makes a version of an add-on.
	CreateVersion fleet.RemedyCode = "check.CreateVersion"
	// DeleteInstance deletes an add-on on a cluster.
	DeleteInstance fleet.RemedyCode = "check.DeleteInstance"
	// DropCertificate has an agent ask for another certificate.
	DropCertificate fleet.RemedyCode = "check.DropCertificate"
	// ExplainPlacement tells why a placement selects what it does.
	ExplainPlacement fleet.RemedyCode = "check.ExplainPlacement"
	// FindController looks whether the controller of an add-on runs.
	FindController fleet.RemedyCode = "check.FindController"
	// GiveUpHook looks at the hook of an add-on, and gives it up.
	GiveUpHook fleet.RemedyCode = "check.GiveUpHook"
	// JoinByAddress names another address of the hub where clusters join.
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
	// MoveAgent joins once more where the hub has moved.
	MoveAgent fleet.RemedyCode = "check.MoveAgent"
	// PublishAddress has the hub publish an address that others reach.
	PublishAddress fleet.RemedyCode = "check.PublishAddress"
	// PutNameBack puts the name of a cluster back into its klusterlet.
	PutNameBack fleet.RemedyCode = "check.PutNameBack"
	// ReadController looks what the controller of an add-on says.
	ReadController fleet.RemedyCode = "check.ReadController"
	// RegisterAddOn registers an add-on, or deletes it.
	RegisterAddOn fleet.RemedyCode = "check.RegisterAddOn"
	// RemoveGone removes a cluster that is gone for good.
	RemoveGone fleet.RemedyCode = "check.RemoveGone"
	// ResumeRollout lets a rollout go on.
	ResumeRollout fleet.RemedyCode = "check.ResumeRollout"
	// ShowAgent looks at the agent of an add-on on its cluster.
	ShowAgent fleet.RemedyCode = "check.ShowAgent"
	// ShowMissingRights tells what gives an add-on the rights that it lacks.
	ShowMissingRights fleet.RemedyCode = "check.ShowMissingRights"
	// ShowSigner looks whether certificates are signed again.
	ShowSigner fleet.RemedyCode = "check.ShowSigner"
	// ShowTree tells of the objects of a work.
	ShowTree fleet.RemedyCode = "check.ShowTree"
	// ShowYAML looks at all of an object.
	ShowYAML fleet.RemedyCode = "check.ShowYAML"
	// TryTemplate tries a correction of a template.
	TryTemplate fleet.RemedyCode = "check.TryTemplate"
)
