{{- define "agent.name" -}}{{ .Release.Name }}-agent{{- end -}}
