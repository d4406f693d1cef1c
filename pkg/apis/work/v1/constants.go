// SPDX-License-Identifier: Apache-2.0

package v1

// Finalizers, annotations and names of the work area.
const (
	// FinalizerManifestWork on a ManifestWork keeps it until the agent has removed its
	// objects. The RoleBinding of the work agent carries the same string.
	FinalizerManifestWork = "cluster.open-cluster-management.io/manifest-work-cleanup"
	// FinalizerAppliedManifestWork on an AppliedManifestWork keeps it until its
	// objects are gone.
	FinalizerAppliedManifestWork = "cluster.open-cluster-management.io/applied-manifest-work-cleanup"
	// AnnotationConfigSpecHash on an applied object holds the hash that the
	// condition OnSpokeChange of ignoreFields compares.
	AnnotationConfigSpecHash = "open-cluster-management.io/config-spec-hash"
	// AnnotationAppliedDigest on an AppliedManifestWork is the agent's own record of what
	// it applied, so that it does not apply it again after a restart.
	AnnotationAppliedDigest = "work.open-cluster-management.io/applied-digest"
	// AnnotationCompleteManifests on an AppliedManifestWork lists digests of the manifests
	// that were complete, so that their objects are not created again. It is specific to
	// this agent; other agents ignore it.
	AnnotationCompleteManifests = "work.open-cluster-management.io/complete-manifests"
	// AnnotationExecutor on an AppliedManifestWork is the user name of the account that
	// applied its objects, so that they can be removed when the ManifestWork no longer
	// exists. It is specific to this agent; other agents ignore it.
	AnnotationExecutor = "work.open-cluster-management.io/executor"
	// AnnotationIntent on an AppliedManifestWork lists, as JSON, the objects that the agent
	// was about to write when it created it. It counts until the status lists objects, and
	// spares the write that would list them there first. It is specific to this agent; other
	// agents ignore it.
	AnnotationIntent = "work.open-cluster-management.io/intent"
	// AnnotationKept on a ManifestWork says that it is about to be deleted and must leave
	// its objects, whoever created it: loops that own the work leave it alone. It holds the
	// delete option and the owners that the work had before, as JSON.
	AnnotationKept = "work.open-cluster-management.io/kept"
	// AnnotationLastSeen on an AppliedManifestWork says which state of the ManifestWork was
	// carried out last: UID, generation and resourceVersion. With it an agent detects that
	// the hub was restored to an older state.
	AnnotationLastSeen = "work.open-cluster-management.io/last-seen"
	// AnnotationRemovalHeld on an AppliedManifestWork says why none of its objects are
	// removed from the cluster; removing the annotation confirms their removal.
	AnnotationRemovalHeld = "work.open-cluster-management.io/removal-held"
	// AnnotationPrefixLogging begins the annotations of a ManifestWork that are
	// copied into log lines.
	AnnotationPrefixLogging = "logging.open-cluster-management.io/"
	// DefaultFieldManager owns the fields that the agent applies; it is also the user
	// agent.
	DefaultFieldManager = "work-agent"
)

// Condition types of a ManifestWork and of its objects.
const (
	// ConditionApplied is True when the object, or all of them, were applied.
	ConditionApplied = "Applied"
	// ConditionAvailable is True when the object, or all of them, exist.
	ConditionAvailable = "Available"
	// ConditionStatusFeedbackSynced on an object is True when every value that
	// rules ask for could be read.
	ConditionStatusFeedbackSynced = "StatusFeedbackSynced"
	// ConditionComplete is set by condition rules: the object has completed.
	ConditionComplete = "Complete"
	// ConditionProgressing is set by condition rules: the object is progressing.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is set by condition rules: the object is degraded.
	ConditionDegraded = "Degraded"
	// ConditionDeleting is set while the objects of a ManifestWork are removed.
	ConditionDeleting = "Deleting"
	// ConditionRemovalHeld is True while nothing is removed until a user confirms it, and
	// absent otherwise.
	ConditionRemovalHeld = "RemovalHeld"
)

// Condition reasons of single objects.
const (
	// ReasonAppliedManifestComplete goes with Applied True.
	ReasonAppliedManifestComplete = "AppliedManifestComplete"
	// ReasonAppliedManifestFailed goes with Applied False.
	ReasonAppliedManifestFailed = "AppliedManifestFailed"
	// ReasonAppliedManifestSSAIgnoreFieldError goes with Applied False when the fields to
	// ignore could not be determined.
	ReasonAppliedManifestSSAIgnoreFieldError = "AppliedManifestSSAIgnoreFieldError"
	// ReasonResourceAvailable goes with Available True.
	ReasonResourceAvailable = "ResourceAvailable"
	// ReasonResourceNotAvailable goes with Available False: not found.
	ReasonResourceNotAvailable = "ResourceNotAvailable"
	// ReasonFetchingResourceFailed goes with Available Unknown: not readable.
	ReasonFetchingResourceFailed = "FetchingResourceFailed"
	// ReasonIncompleteResourceMeta goes with Available Unknown: the object cannot
	// be named.
	ReasonIncompleteResourceMeta = "IncompleteResourceMeta"
	// ReasonNoStatusFeedbackSynced goes with StatusFeedbackSynced True: no rules.
	ReasonNoStatusFeedbackSynced = "NoStatusFeedbackSynced"
	// ReasonStatusFeedbackSynced goes with StatusFeedbackSynced True.
	ReasonStatusFeedbackSynced = "StatusFeedbackSynced"
	// ReasonStatusFeedbackSyncFailed goes with StatusFeedbackSynced False.
	ReasonStatusFeedbackSyncFailed = "StatusFeedbackSyncFailed"
	// ReasonPrefixConditionRule begins every reason of conditions set by rules.
	ReasonPrefixConditionRule = "ConditionRule"
	// ReasonConditionRuleEvaluated means that the rule was evaluated.
	ReasonConditionRuleEvaluated = "ConditionRuleEvaluated"
	// ReasonConditionRuleInvalid means that the rule cannot be understood.
	ReasonConditionRuleInvalid = "ConditionRuleInvalid"
	// ReasonConditionRuleExpressionError means that an expression failed.
	ReasonConditionRuleExpressionError = "ConditionRuleExpressionError"
	// ReasonConditionRuleInternalError means that the rule could not be evaluated.
	ReasonConditionRuleInternalError = "ConditionRuleInternalError"
)

// Condition reasons of a whole ManifestWork.
const (
	// ReasonAppliedManifestWorkComplete goes with Applied True.
	ReasonAppliedManifestWorkComplete = "AppliedManifestWorkComplete"
	// ReasonAppliedManifestWorkFailed goes with Applied False.
	ReasonAppliedManifestWorkFailed = "AppliedManifestWorkFailed"
	// ReasonHubWentBack goes with RemovalHeld True: the hub shows an older state of the
	// ManifestWork than the one last applied.
	ReasonHubWentBack = "HubWentBack"
	// ReasonNamespaceKept is that of the Event about a namespace that stays when its work
	// is deleted or no longer declares it, because other works have objects in it.
	ReasonNamespaceKept = "NamespaceKept"
	// ReasonResourcesAvailable goes with Available True.
	ReasonResourcesAvailable = "ResourcesAvailable"
	// ReasonResourcesNotAvailable goes with Available False.
	ReasonResourcesNotAvailable = "ResourcesNotAvailable"
	// ReasonResourcesStatusUnknown goes with Available Unknown.
	ReasonResourcesStatusUnknown = "ResourcesStatusUnknown"
	// ReasonConditionRulesAggregated goes with conditions aggregated from those of the
	// objects.
	ReasonConditionRulesAggregated = "ConditionRulesAggregated"
)

// Messages of the conditions Applied and Available, as peers expect them; details are added
// after a colon or in place of a formatting verb.
const (
	// MessageManifestApplied goes with Applied True of an object.
	MessageManifestApplied = "Apply manifest complete"
	// MessageManifestFailed, with the error, goes with Applied False of an object.
	MessageManifestFailed = "Failed to apply manifest: %s"
	// MessageManifestIgnoreFieldsFailed, with the error, goes with Applied False of an
	// object whose ignoreFields could not be determined.
	MessageManifestIgnoreFieldsFailed = "Failed to process ignoreFields: %s"
	// MessageResourceAvailable goes with Available True of an object.
	MessageResourceAvailable = "Resource is available"
	// MessageResourceNotAvailable goes with Available False of an object.
	MessageResourceNotAvailable = "Resource is not available"
	// MessageFetchingResourceFailed, with the error, goes with Available Unknown
	// of an object.
	MessageFetchingResourceFailed = "Failed to fetch resource: %s"
	// MessageIncompleteResourceMeta goes with Available Unknown of an object.
	MessageIncompleteResourceMeta = "Resource meta is incomplete"
	// MessageStatusFeedbackFailed, with the error, goes with StatusFeedbackSynced
	// False.
	MessageStatusFeedbackFailed = "Sync status feedback failed with error %s"
	// MessageWorkApplied goes with Applied True of a ManifestWork.
	MessageWorkApplied = "Apply manifest work complete"
	// MessageWorkFailed goes with Applied False of a ManifestWork.
	MessageWorkFailed = "Failed to apply manifest work"
	// MessageResourcesAvailable goes with Available True of a ManifestWork.
	MessageResourcesAvailable = "All resources are available"
	// MessageResourcesNotAvailable, with two numbers, goes with Available False of
	// a ManifestWork.
	MessageResourcesNotAvailable = "%d of %d resources are not available"
	// MessageResourcesStatusUnknown, with two numbers, goes with Available Unknown
	// of a ManifestWork.
	MessageResourcesStatusUnknown = "%d of %d resources have unknown status"
	// MessageNoAvailableResource goes with Available Unknown of a ManifestWork of which no
	// object has been checked. The trailing space is intentional.
	MessageNoAvailableResource = "cannot get any available resource "
	// MessageConditionsAggregated, with a number, goes with conditions aggregated from
	// those of several objects.
	MessageConditionsAggregated = "Aggregated from %d manifest conditions"
)
