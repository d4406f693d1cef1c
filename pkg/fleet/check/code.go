// SPDX-License-Identifier: Apache-2.0

package check

// The codes: 01xx this machine, which only the program can look at, 02xx the hub,
// 03xx a cluster on its hub, 04xx the agent on its cluster, 05xx a placement, 07xx an
// add-on.
const (
	CodeShadowed         = "OCM0105"
	CodeHubReached       = "OCM0201"
	CodeHubInstalled     = "OCM0202"
	CodeHubRuns          = "OCM0203"
	CodeHubAddress       = "OCM0204"
	CodeHubKinds         = "OCM0205"
	CodeHubAdmission     = "OCM0206"
	CodeHubSigner        = "OCM0207"
	CodeHubForeign       = "OCM0208"
	CodeClusterWaits     = "OCM0301"
	CodeClusterRequest   = "OCM0302"
	CodeClusterJoining   = "OCM0303"
	CodeClusterLease     = "OCM0304"
	CodeClusterUnwell    = "OCM0305"
	CodeClusterDenied    = "OCM0306"
	CodeClusterLeaves    = "OCM0307"
	CodeClusterClock     = "OCM0308"
	CodeClusterName      = "OCM0309"
	CodeClusterRights    = "OCM0310"
	CodeClusterWorks     = "OCM0311"
	CodeClusterSet       = "OCM0312"
	CodeClusterVersion   = "OCM0313"
	CodeSpokeReached     = "OCM0401"
	CodeSpokeAgent       = "OCM0402"
	CodeSpokeKlusterlet  = "OCM0403"
	CodeSpokeCertificate = "OCM0404"
	CodeSpokeHub         = "OCM0405"
	CodeSpokeIdentity    = "OCM0406"

	CodePlacementNoBinding = "OCM0501"
	CodePlacementUnbound   = "OCM0502"
	CodePlacementEmpty     = "OCM0503"
	CodePlacementPredicate = "OCM0504"
	CodePlacementCount     = "OCM0505"
	CodePlacementSpec      = "OCM0506"
	CodePlacementScores    = "OCM0507"
	CodePlacementDecided   = "OCM0508"

	CodeAddOnRegistered   = "OCM0701"
	CodeAddOnPlacement    = "OCM0702"
	CodeAddOnConfig       = "OCM0703"
	CodeAddOnRegistration = "OCM0704"
	CodeAddOnCredential   = "OCM0705"
	CodeAddOnWorks        = "OCM0706"
	CodeAddOnHealth       = "OCM0707"
	CodeAddOnLeaves       = "OCM0708"
	CodeAddOnCluster      = "OCM0709"
	CodeAddOnTemplate     = "OCM0710"
	CodeAddOnToken        = "OCM0711"
	CodeAddOnRollout      = "OCM0712"
)
