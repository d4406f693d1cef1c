// SPDX-License-Identifier: Apache-2.0

package v1

// ManifestConfigOption refines how the objects that it selects are applied and
// what is reported back about them.
type ManifestConfigOption struct {
	// resourceIdentifier selects objects of the workload.
	// +required
	ResourceIdentifier ResourceIdentifier `json:"resourceIdentifier"`

	// feedbackRules say which values of the applied objects are copied to the
	// status of the ManifestWork.
	// +optional
	FeedbackRules []FeedbackRule `json:"feedbackRules,omitempty"`

	// feedbackScrapeType is Poll to read those values periodically, or Watch to read them
	// when the object changes. The default is Poll.
	// +optional
	// +kubebuilder:default=Poll
	FeedbackScrapeType FeedbackScrapeType `json:"feedbackScrapeType,omitempty"`

	// updateStrategy says how an object that exists is brought to the desired state. Absent
	// means Update.
	// +optional
	UpdateStrategy *UpdateStrategy `json:"updateStrategy,omitempty"`

	// conditionRules derive conditions of the ManifestWork from the state of the applied
	// objects.
	// +optional
	// +listType=map
	// +listMapKey=condition
	ConditionRules []ConditionRule `json:"conditionRules,omitempty"`
}

// ResourceIdentifier selects objects of a ManifestWork.
type ResourceIdentifier struct {
	// group of the resource; empty is the core group.
	// +optional
	Group string `json:"group,omitempty"`

	// resource is the plural name of the resource, for example deployments.
	// +required
	Resource string `json:"resource"`

	// name of the object. A * stands for any number of characters.
	// +required
	Name string `json:"name"`

	// namespace of the object; empty for one without a namespace. A * stands for
	// any number of characters.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// UpdateStrategy says how an existing object is brought to the desired state.
type UpdateStrategy struct {
	// type is Update to write the manifest whenever it differs, CreateOnly to
	// create the object and never touch it again, ServerSideApply to apply the
	// manifest as a field manager, or ReadOnly to write nothing and only report.
	// The default is Update.
	// +required
	// +kubebuilder:default=Update
	Type UpdateStrategyType `json:"type,omitempty"`

	// serverSideApply refines the type ServerSideApply.
	// +optional
	ServerSideApply *ServerSideApplyConfig `json:"serverSideApply,omitempty"`
}

// UpdateStrategyType names a way to bring an object to the desired state.
//
// +kubebuilder:validation:Enum=Update;CreateOnly;ServerSideApply;ReadOnly
type UpdateStrategyType string

// Update strategies.
const (
	// UpdateStrategyTypeUpdate writes the manifest whenever it differs.
	UpdateStrategyTypeUpdate UpdateStrategyType = "Update"
	// UpdateStrategyTypeCreateOnly creates the object and never changes it.
	UpdateStrategyTypeCreateOnly UpdateStrategyType = "CreateOnly"
	// UpdateStrategyTypeServerSideApply applies the manifest as a field manager.
	UpdateStrategyTypeServerSideApply UpdateStrategyType = "ServerSideApply"
	// UpdateStrategyTypeReadOnly writes nothing.
	UpdateStrategyTypeReadOnly UpdateStrategyType = "ReadOnly"
)

// ServerSideApplyConfig refines server-side apply.
type ServerSideApplyConfig struct {
	// force takes over fields that another manager owns. Without it such a field
	// makes the apply fail. The default is false.
	// +optional
	Force bool `json:"force,omitempty"`

	// fieldManager is the name under which fields are owned; it must start with
	// work-agent. The default is work-agent.
	// +optional
	// +kubebuilder:default=work-agent
	// +kubebuilder:validation:Pattern=`^work-agent`
	FieldManager string `json:"fieldManager,omitempty"`

	// ignoreFields are parts of the manifest that are left out of the apply under
	// a condition, at most one entry per condition.
	// +optional
	// +listType=map
	// +listMapKey=condition
	IgnoreFields []IgnoreField `json:"ignoreFields,omitempty"`
}

// IgnoreField names parts of a manifest that are not applied under a condition.
type IgnoreField struct {
	// condition is OnSpokePresent to leave the fields out once the object exists,
	// or OnSpokeChange to leave them out when they changed on the managed cluster
	// while the manifest did not. The default is OnSpokePresent.
	// +required
	// +kubebuilder:default=OnSpokePresent
	Condition IgnoreFieldsCondition `json:"condition"`

	// jsonPaths name the fields as JSONPath, for example .spec.replicas.
	// +optional
	JSONPaths []string `json:"jsonPaths,omitempty"`

	// jsonPointers name the fields as JSON pointers (RFC 6901), for example
	// /spec/replicas.
	// +optional
	JSONPointers []string `json:"jsonPointers,omitempty"`

	// jqPathExpressions name the fields as jq paths.
	// +optional
	JQPathExpressions []string `json:"jqPathExpressions,omitempty"`
}

// IgnoreFieldsCondition is when fields are left out of an apply.
//
// +kubebuilder:validation:Enum=OnSpokePresent;OnSpokeChange
type IgnoreFieldsCondition string

// Conditions under which fields are left out.
const (
	// IgnoreFieldsConditionOnSpokePresent holds once the object exists.
	IgnoreFieldsConditionOnSpokePresent IgnoreFieldsCondition = "OnSpokePresent"
	// IgnoreFieldsConditionOnSpokeChange holds when the fields changed on the
	// managed cluster.
	IgnoreFieldsConditionOnSpokeChange IgnoreFieldsCondition = "OnSpokeChange"
)

// FeedbackRule says which values are copied to the status of the ManifestWork.
type FeedbackRule struct {
	// type is WellKnownStatus for the built-in values of known kinds (for example
	// ReadyReplicas of a Deployment), or JSONPaths for those that jsonPaths names.
	// +required
	Type FeedbackRuleType `json:"type"`

	// jsonPaths name the values when type is JSONPaths.
	// +optional
	// +listType=map
	// +listMapKey=name
	JSONPaths []JSONPath `json:"jsonPaths,omitempty"`
}

// FeedbackRuleType is the kind of a feedback rule.
//
// +kubebuilder:validation:Enum=WellKnownStatus;JSONPaths
type FeedbackRuleType string

// Kinds of feedback rules.
const (
	// FeedbackRuleTypeWellKnownStatus copies the values that are built in.
	FeedbackRuleTypeWellKnownStatus FeedbackRuleType = "WellKnownStatus"
	// FeedbackRuleTypeJSONPaths copies the values that the rule names.
	FeedbackRuleTypeJSONPaths FeedbackRuleType = "JSONPaths"
)

// FeedbackScrapeType is how feedback values are read.
//
// +kubebuilder:validation:Enum=Poll;Watch
type FeedbackScrapeType string

// Ways to read feedback values.
const (
	// FeedbackScrapeTypePoll reads them at intervals.
	FeedbackScrapeTypePoll FeedbackScrapeType = "Poll"
	// FeedbackScrapeTypeWatch reads them when the object changes.
	FeedbackScrapeTypeWatch FeedbackScrapeType = "Watch"
)

// JSONPath names one value of an applied object.
type JSONPath struct {
	// name under which the value is reported.
	// +required
	Name string `json:"name"`

	// version of the resource in which the object is read. Absent means the
	// version of the manifest.
	// +optional
	Version string `json:"version,omitempty"`

	// path of the value as JSONPath, for example .status.readyReplicas. It must
	// lead to a single value.
	// +required
	Path string `json:"path"`
}

// ConditionRule derives a condition from the state of an applied object.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'CEL' || self.condition != \"\"",message="Condition is required for CEL rules"
type ConditionRule struct {
	// condition is the type of the condition that is set, for example Complete.
	// +required
	Condition string `json:"condition"`

	// type is WellKnownConditions for the built-in rules of known kinds (for example
	// Complete of a Job), or CEL for celExpressions.
	// +required
	Type ConditionRuleType `json:"type"`

	// celExpressions are evaluated with the applied object as the variable object. The
	// condition is True when all of them are true.
	// +optional
	CELExpressions []string `json:"celExpressions,omitempty"`

	// message of the condition.
	// +optional
	Message string `json:"message,omitempty"`

	// messageExpression is a CEL expression that returns the message; it takes precedence
	// over message. It can use the variables object and result.
	// +optional
	MessageExpression string `json:"messageExpression,omitempty"`
}

// ConditionRuleType is the kind of a condition rule.
//
// +kubebuilder:validation:Enum=WellKnownConditions;CEL
type ConditionRuleType string

// Kinds of condition rules.
const (
	// ConditionRuleTypeWellKnownConditions uses the rules that are built in.
	ConditionRuleTypeWellKnownConditions ConditionRuleType = "WellKnownConditions"
	// ConditionRuleTypeCEL uses the expressions of the rule.
	ConditionRuleTypeCEL ConditionRuleType = "CEL"
)
