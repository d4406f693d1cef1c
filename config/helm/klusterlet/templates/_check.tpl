{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* Fails on values of Open Cluster Management's chart that this agent does not support. */}}
{{- define "klusterlet.check" -}}
{{- if eq .Release.Namespace .Values.klusterlet.namespace -}}
{{- $fix := "install with --namespace open-cluster-management --create-namespace" -}}
{{- fail (printf "klusterlet.namespace: the agent deletes %s when it leaves: %s" .Release.Namespace $fix) -}}
{{- end -}}
{{- $oneProcess := "one process is operator and agent: leave it out" -}}
{{- $ofAgent := "the agent's pod is placed by klusterlet.nodePlacement" -}}
{{- $unsupported := dict
  "enableSyncLabels" "the agent does not copy labels: leave it out"
  "externalManagedKubeConfig" "hosted modes are not supported: install the chart on the managed cluster"
  "extraVolumeMounts" "the agent reads no files: leave it out"
  "extraVolumes" "the agent reads no files: leave it out"
  "grpcConfig" "clusters register by certificate requests only: set bootstrapHubKubeConfig"
  "images.imageCredentials.createImageCredentials" "create the Secret yourself and name it in images.imagePullSecrets"
  "images.overrides.registrationImage" "one process runs every part: set images.overrides.operatorImage"
  "images.overrides.workImage" "one process runs every part: set images.overrides.operatorImage"
  "klusterlet.resourceRequirement" "one process runs every part: set resources"
  "noOperator" $oneProcess
  "nodeSelector" $ofAgent
  "tolerations" $ofAgent
-}}
{{- range $path, $fix := $unsupported -}}
{{- $value := $.Values -}}
{{- range $key := splitList "." $path -}}
{{- $value = get ($value | default dict) $key -}}
{{- end -}}
{{- if $value -}}{{- fail (printf "%s is not supported: %s" $path $fix) -}}{{- end -}}
{{- end -}}
{{- $driver := dig "registrationDriver" "authType" "" (.Values.klusterlet.registrationConfiguration | default dict) -}}
{{- if not (has $driver (list "" "csr")) -}}
{{- fail (printf "klusterlet.registrationConfiguration.registrationDriver.authType: %s is not supported: use csr" $driver) -}}
{{- end -}}
{{- end -}}
