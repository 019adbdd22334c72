{{- /*
With how many shards a service runs now; empty if it does not, or where helm does not ask the cluster. Two pods that know
different numbers would both write for some objects. Takes root, component.
*/ -}}
{{- define "flotilla.liveShards" -}}
{{- $live := lookup "apps/v1" "Deployment" .root.Values.installation.namespace (printf "flotilla-%s" .component) }}
{{- if $live }}
{{- $shards := "1" }}
{{- range (first $live.spec.template.spec.containers).args }}
{{- if hasPrefix "--shards=" . }}{{ $shards = trimPrefix "--shards=" . }}{{ end }}
{{- end }}
{{- $shards }}
{{- end }}
{{- end }}

{{- /* Pods are replaced one by one; all at once if the number of shards changes. Takes root, component, own. */ -}}
{{- define "flotilla.strategy" -}}
{{- $live := include "flotilla.liveShards" . }}
{{- if and $live (ne $live (toString (default 1 .own.shards))) }}
type: Recreate
{{- else }}
rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
{{- end }}
{{- end }}

{{- /* The compact profile has one shard of each service, and its pod begins while those of the other profile end. */ -}}
{{- define "flotilla.checkShards" -}}
{{- if eq .Values.profile "compact" }}
{{- range $name, $_ := (include "flotilla.declared" . | fromYaml).services }}
{{- $live := include "flotilla.liveShards" (dict "root" $ "component" $name) }}
{{- if and $live (ne $live "1") }}
{{- fail (printf "profile: %s runs with %s shards, and compact has one; upgrade with services.%s.shards=1 before" $name $live $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
