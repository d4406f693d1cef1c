{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* Fails on values of Open Cluster Management's chart that this hub does not support. */}}
{{- define "cluster-manager.check" -}}
{{- if ne .Release.Namespace "open-cluster-management" -}}
{{- fail "the hub runs in one namespace: install with --namespace open-cluster-management --create-namespace" -}}
{{- end -}}
{{- $onePart := "one process runs every part: set images.overrides.operatorImage" -}}
{{- $unsupported := dict
  "createBootstrapToken" "its token would change with each upgrade: create one with \"kubectl ocm hub token\""
  "images.imageCredentials.createImageCredentials" "create the Secret yourself and name it in images.imagePullSecrets"
  "images.overrides.addOnManagerImage" $onePart
  "images.overrides.placementImage" $onePart
  "images.overrides.registrationImage" $onePart
  "images.overrides.workImage" $onePart
  "clusterManager.resourceRequirement" "one process runs every part: set resources"
  "clusterManager.serverConfiguration" "clusters register by certificate requests only: leave it out"
-}}
{{- range $path, $fix := $unsupported -}}
{{- $value := $.Values -}}
{{- range $key := splitList "." $path -}}
{{- $value = get ($value | default dict) $key -}}
{{- end -}}
{{- if $value -}}{{- fail (printf "%s is not supported: %s" $path $fix) -}}{{- end -}}
{{- end -}}
{{- range $driver := dig "registrationDrivers" list (.Values.clusterManager.registrationConfiguration | default dict) -}}
{{- if ne ($driver.authType | default "csr") "csr" -}}
{{- fail (printf "clusterManager.registrationConfiguration.registrationDrivers: %s is not supported: use csr" $driver.authType) -}}
{{- end -}}
{{- end -}}
{{- with dig "workDriver" "" (.Values.clusterManager.workConfiguration | default dict) -}}
{{- if ne . "kube" -}}{{- fail (printf "clusterManager.workConfiguration.workDriver: %s is not supported: use kube" .) -}}{{- end -}}
{{- end -}}
{{- end -}}
