{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* Sets in the specification of a pod what values say. */}}
{{- define "cluster-manager.pod" -}}
{{- $values := .root.Values -}}
{{- $pod := .pod -}}
{{- $container := first $pod.containers -}}
{{- $image := printf "%s/ocm-hub:%s" (trimSuffix "/" $values.images.registry) ($values.images.tag | default .root.Chart.AppVersion) -}}
{{- $_ := set $container "image" ($values.images.overrides.operatorImage | default $image) -}}
{{- $_ := set $container "imagePullPolicy" $values.images.imagePullPolicy -}}
{{- with $values.images.imagePullSecrets -}}{{- $_ := set $pod "imagePullSecrets" . -}}{{- end -}}
{{- with $values.podSecurityContext -}}{{- $_ := set $pod "securityContext" . -}}{{- end -}}
{{- with $values.securityContext -}}{{- $_ := set $container "securityContext" . -}}{{- end -}}
{{- with $values.resources -}}{{- $_ := set $container "resources" . -}}{{- end -}}
{{- range $field := list "affinity" "nodeSelector" "tolerations" -}}
{{- with index $values $field -}}{{- $_ := set $pod $field . -}}{{- end -}}
{{- end -}}
{{- if eq $values.layout "split" -}}
{{- $_ := set $container "args" (list "operator") -}}
{{- with $values.images.imagePullSecrets -}}
{{- $_ := set $container "args" (append $container.args (printf "--image-pull-secret-name=%s" (first .).name)) -}}
{{- end -}}
{{- end -}}
{{- if $values.enableSyncLabels -}}
{{- $_ := set $container "args" (append $container.args "--enable-sync-labels") -}}
{{- end -}}
{{- if $values.skipRemoveCRDs -}}
{{- $_ := set $container "args" (append $container.args "--skip-remove-crds") -}}
{{- end -}}
{{- end -}}
