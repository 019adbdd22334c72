{{- /* Values of OpenKruise's charts that have no meaning here. They are taken, and NOTES names those that were given. */ -}}
{{- define "flotilla.ignoredValues" -}}
- installation.roleListGroups
- enableKubeCacheMutationDetector
- helmHooks
- manager.resyncPeriod
- manager.pprofAddr
- manager.metrics.addr
- daemon.enablePprof
- daemon.pprofAddr
- webhookConfiguration.failurePolicy
{{- end }}

{{- /* Those that were given, one a line. */ -}}
{{- define "flotilla.ignored" -}}
{{- $given := list }}
{{- range $path := include "flotilla.ignoredValues" . | fromYamlArray }}
{{- $at := $.Values }}
{{- $there := true }}
{{- range splitList "." $path }}
{{- $there = and $there (hasKey $at .) }}
{{- if $there }}{{ $at = index $at . }}{{ end }}
{{- end }}
{{- if $there }}{{ $given = append $given $path }}{{ end }}
{{- end }}
{{- $given | join "\n" }}
{{- end }}

{{- /* Where pods of services may run: spec.* of charts before 1.0 stands in for what manager.* leaves out. */ -}}
{{- define "flotilla.placement" -}}
{{- $older := .Values.spec | default dict }}
nodeSelector: {{ .Values.manager.nodeSelector | default $older.nodeSelector | default dict | toJson }}
nodeAffinity: {{ .Values.manager.nodeAffinity | default $older.nodeAffinity | default dict | toJson }}
tolerations: {{ .Values.manager.tolerations | default $older.tolerations | default list | toJson }}
{{- end }}

{{- /* Its manager, as JSON, if it is on the cluster. `helm template` sees no cluster. */ -}}
{{- define "flotilla.originalManager" -}}
{{- with lookup "apps/v1" "Deployment" .Values.installation.namespace "kruise-controller-manager" }}{{ toJson . }}{{ end }}
{{- end }}

{{- /* Two managers must not write the same objects. */ -}}
{{- define "flotilla.checkOriginal" -}}
{{- with include "flotilla.originalManager" . }}
{{- if int (dig "spec" "replicas" 1 (fromJson .)) }}
{{- fail "OpenKruise is running on this cluster: run flotilla adopt first (docs/taking-over.md)" }}
{{- end }}
{{- end }}
{{- end }}
