// SPDX-License-Identifier: Apache-2.0

package check

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for findings.
const (
	// AcceptAnew gives a name to a cluster that was reinstalled, or keeps it.
	AcceptAnew fleet.RemedyCode = "check.AcceptAnew"
	// AcceptOnHub accepts the request of an agent on its hub.
	AcceptOnHub fleet.RemedyCode = "check.AcceptOnHub"
	// AllowAccount lets the hub have tokens of an account on a cluster that others made.
	AllowAccount fleet.RemedyCode = "check.AllowAccount"
	// AllowCopies allows the hub to copy tokens beside ClusterProfiles.
	AllowCopies fleet.RemedyCode = "check.AllowCopies"
	// AllowTokens allows the hub to create tokens for add-ons.
	AllowTokens fleet.RemedyCode = "check.AllowTokens"
	// ApproveRequest inspects a certificate request and approves it.
	ApproveRequest fleet.RemedyCode = "check.ApproveRequest"
	// AwaitDefinition waits until a definition is gone.
	AwaitDefinition fleet.RemedyCode = "check.AwaitDefinition"
	// AwaitPlace waits on a managed cluster until a namespace is gone, CreatePlace creates one
	// there.
	AwaitPlace  fleet.RemedyCode = "check.AwaitPlace"
	CreatePlace fleet.RemedyCode = "check.CreatePlace"
	// CheckAsAdmin checks the hub with all rights.
	CheckAsAdmin fleet.RemedyCode = "check.CheckAsAdmin"
	// CheckCluster checks a cluster.
	CheckCluster fleet.RemedyCode = "check.CheckCluster"
	// CheckHubClusters checks the hub with its clusters.
	CheckHubClusters fleet.RemedyCode = "check.CheckHubClusters"
	// CheckPlacement checks a placement.
	CheckPlacement fleet.RemedyCode = "check.CheckPlacement"
	// CheckWork checks one work.
	CheckWork fleet.RemedyCode = "check.CheckWork"
	// CheckSpoke checks an agent, on its cluster.
	CheckSpoke fleet.RemedyCode = "check.CheckSpoke"
	// CleanHub removes what another distribution runs of a hub.
	CleanHub fleet.RemedyCode = "check.CleanHub"
	// CorrectHost corrects which cluster hosts an add-on.
	CorrectHost fleet.RemedyCode = "check.CorrectHost"
	// CreatePlacement creates a placement.
	CreatePlacement fleet.RemedyCode = "check.CreatePlacement"
	// CreateVersion creates a version of an add-on.
	CreateVersion fleet.RemedyCode = "check.CreateVersion"
	// DeleteCanary deletes a canary without its agent.
	DeleteCanary fleet.RemedyCode = "check.DeleteCanary"
	// DeleteInstance deletes an add-on on a cluster.
	DeleteInstance fleet.RemedyCode = "check.DeleteInstance"
	// DropBinding deletes a binding on a cluster whose role is another one now.
	DropBinding fleet.RemedyCode = "check.DropBinding"
	// DropCertificate makes an agent request another certificate.
	DropCertificate fleet.RemedyCode = "check.DropCertificate"
	// DropApprover deletes a user of automatic acceptance, NameApprover names one.
	DropApprover fleet.RemedyCode = "check.DropApprover"
	NameApprover fleet.RemedyCode = "check.NameApprover"
	// DropRecord deletes the record of a work on a cluster, with the objects of the work.
	DropRecord fleet.RemedyCode = "check.DropRecord"
	// DropSecret deletes a Secret that is in the way.
	DropSecret fleet.RemedyCode = "check.DropSecret"
	// DropToken deletes the Secret of a join token that is not one of ours, RevokeToken revokes one
	// of ours, and TokenFor makes another for a cluster.
	DropToken   fleet.RemedyCode = "check.DropToken"
	RevokeToken fleet.RemedyCode = "check.RevokeToken"
	TokenFor    fleet.RemedyCode = "check.TokenFor"
	// EditObject corrects an object.
	EditObject fleet.RemedyCode = "check.EditObject"
	// EnableAddOn brings an add-on to a cluster.
	EnableAddOn fleet.RemedyCode = "check.EnableAddOn"
	// DropResolver deletes an object that older releases of the add-on cluster-proxy read.
	DropResolver fleet.RemedyCode = "check.DropResolver"
	// CarryServices shows what the add-on cluster-proxy exposes, for the clusters to expose it.
	CarryServices fleet.RemedyCode = "check.CarryServices"
	// DropService deletes an APIService that nobody serves.
	DropService fleet.RemedyCode = "check.DropService"
	// ExplainPlacement shows why a placement selects what it does.
	ExplainPlacement fleet.RemedyCode = "check.ExplainPlacement"
	// FindController checks whether the controller of an add-on runs.
	FindController fleet.RemedyCode = "check.FindController"
	// GiveUpHook inspects the hook of an add-on and gives it up.
	GiveUpHook fleet.RemedyCode = "check.GiveUpHook"
	// GrantAgent gives the agent of a cluster rights on a resource, GrantExecutor a
	// ServiceAccount there.
	GrantAgent    fleet.RemedyCode = "check.GrantAgent"
	GrantExecutor fleet.RemedyCode = "check.GrantExecutor"
	// GrantCanaries allows a user to send canaries.
	GrantCanaries fleet.RemedyCode = "check.GrantCanaries"
	// GrantAdmin makes a user an administrator.
	GrantAdmin fleet.RemedyCode = "check.GrantAdmin"
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
	// ListServed lists the kinds of a group that a cluster serves.
	ListServed fleet.RemedyCode = "check.ListServed"
	// ListScores lists the scores of add-ons.
	ListScores fleet.RemedyCode = "check.ListScores"
	// MoveAgent joins again when the hub has moved.
	MoveAgent fleet.RemedyCode = "check.MoveAgent"
	// SetValidity corrects how long the tokens of a ManagedServiceAccount are valid.
	SetValidity fleet.RemedyCode = "check.SetValidity"
	// SetProxy changes which proxy the Deployment of an agent names, or for which hosts it is not
	// used.
	SetProxy fleet.RemedyCode = "check.SetProxy"
	// JoinByProxy joins again through another proxy.
	JoinByProxy fleet.RemedyCode = "check.JoinByProxy"
	// PublishAnew has the hub publish its address and CA again, instead of what is published.
	PublishAnew fleet.RemedyCode = "check.PublishAnew"
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
	// RenewBootstrap gives a hosted agent a new join token.
	RenewBootstrap fleet.RemedyCode = "check.RenewBootstrap"
	// RestoreRights gives the agent of a klusterlet the roles of its release again.
	RestoreRights fleet.RemedyCode = "check.RestoreRights"
	// ResumeRollout resumes a rollout.
	ResumeRollout fleet.RemedyCode = "check.ResumeRollout"
	// ShowAgent shows the agent of an add-on on its cluster.
	ShowAgent fleet.RemedyCode = "check.ShowAgent"
	// ShowMissingRights shows what grants an add-on the rights that it lacks.
	ShowMissingRights fleet.RemedyCode = "check.ShowMissingRights"
	// ShowRivals shows two works that declare the same object.
	ShowRivals fleet.RemedyCode = "check.ShowRivals"
	// ShowSigner checks whether certificates are signed again.
	ShowSigner fleet.RemedyCode = "check.ShowSigner"
	// ShowTree shows the objects of a work.
	ShowTree fleet.RemedyCode = "check.ShowTree"
	// ShowYAML shows a whole object.
	ShowYAML fleet.RemedyCode = "check.ShowYAML"
	// StoreAgain stores the objects of a definition in a version that is served, and drops the others
	// from its status.
	StoreAgain fleet.RemedyCode = "check.StoreAgain"
	// TakeFields lets a work take over the fields of others.
	TakeFields fleet.RemedyCode = "check.TakeFields"
	// TakeOverAgent shows what taking over the agent of another distribution changes, and
	// TakeOverHub the same of a hub.
	TakeOverAgent fleet.RemedyCode = "check.TakeOverAgent"
	TakeOverHub   fleet.RemedyCode = "check.TakeOverHub"
	// TryTemplate tries a corrected template.
	TryTemplate fleet.RemedyCode = "check.TryTemplate"
	// UpgradeHub moves the hub to the release of the program, UpgradeProgram the program to that
	// of the hub.
	UpgradeHub     fleet.RemedyCode = "check.UpgradeHub"
	UpgradeProgram fleet.RemedyCode = "check.UpgradeProgram"
)
