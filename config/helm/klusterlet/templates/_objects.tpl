{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* Sets in the specification of a pod what values say. */}}
{{- define "klusterlet.pod" -}}
{{- $values := .root.Values -}}
{{- $pod := .pod -}}
{{- $container := first $pod.containers -}}
{{- $image := printf "%s/ocm-agent:%s" (trimSuffix "/" $values.images.registry) ($values.images.tag | default .root.Chart.AppVersion) -}}
{{- $_ := set $container "image" ($values.images.overrides.operatorImage | default $image) -}}
{{- $_ := set $container "imagePullPolicy" $values.images.imagePullPolicy -}}
{{- with $values.images.imagePullSecrets -}}{{- $_ := set $pod "imagePullSecrets" . -}}{{- end -}}
{{- with $values.podSecurityContext -}}{{- $_ := set $pod "securityContext" . -}}{{- end -}}
{{- with $values.securityContext -}}{{- $_ := set $container "securityContext" . -}}{{- end -}}
{{- with $values.resources -}}{{- $_ := set $container "resources" . -}}{{- end -}}
{{- with $values.affinity -}}{{- $_ := set $pod "affinity" . -}}{{- end -}}
{{- with $values.priorityClassName -}}{{- $_ := set $pod "priorityClassName" . -}}{{- end -}}
{{- range $field := list "nodeSelector" "tolerations" -}}
{{- with get ($values.klusterlet.nodePlacement | default dict) $field -}}{{- $_ := set $pod $field . -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/* Sets in the spec of a Klusterlet what values say. */}}
{{- define "klusterlet.spec" -}}
{{- $spec := .spec -}}
{{- $klusterlet := .root.Values.klusterlet -}}
{{- $_ := set $spec.deployOption "mode" $klusterlet.mode -}}
{{- $_ := set $spec "clusterName" $klusterlet.clusterName -}}
{{- range $field := list "externalServerURLs" "nodePlacement" "registrationConfiguration" "workConfiguration" -}}
{{- with index $klusterlet $field -}}{{- $_ := set $spec $field . -}}{{- end -}}
{{- end -}}
{{- with .root.Values.priorityClassName -}}{{- $_ := set $spec "priorityClassName" . -}}{{- end -}}
{{- end -}}

{{/* Takes the verbs from a role that narrow rights leave out. */}}
{{- define "klusterlet.narrow" -}}
{{- $rules := list -}}
{{- range $rule := .rules -}}
{{- $verbs := without $rule.verbs "escalate" "bind" "impersonate" -}}
{{- if $verbs -}}{{- $rules = append $rules (set $rule "verbs" $verbs) -}}{{- end -}}
{{- end -}}
{{- $_ := set . "rules" $rules -}}
{{- end -}}
