{{- /* The gates as text: what is given, and what another value implies. */ -}}
{{- define "flotilla.featureGates" -}}
{{- $external := ternary "EnableExternalCerts=true" "" .Values.certManager.enabled }}
{{- list (.Values.featureGates | default "") $external | compact | join "," }}
{{- end }}

{{- /* The gates that are named, as a map of Name: "true" or "false". */ -}}
{{- define "flotilla.namedGates" -}}
{{- $named := dict }}
{{- range splitList "," (include "flotilla.featureGates" .) }}
{{- if trim . }}
{{- $pair := regexSplit "\\s*=\\s*" (trim .) 2 }}
{{- if ne (len $pair) 2 }}{{ fail (printf "featureGates: %s has no value; write %s=true or %s=false" (trim .) (trim .) (trim .)) }}{{ end }}
{{- $value := lower (last $pair) }}
{{- if not (has $value (list "true" "t" "1" "false" "f" "0")) }}{{ fail (printf "featureGates: %s is neither true nor false" (trim .)) }}{{ end }}
{{- $_ := set $named (first $pair) (ternary "true" "false" (has $value (list "true" "t" "1"))) }}
{{- end }}
{{- end }}
{{- toYaml $named }}
{{- end }}

{{- /* Whether a gate is on: named, else by its stage (AllAlpha, AllBeta), else by default. Takes root, gate. */ -}}
{{- define "flotilla.gate" -}}
{{- $gate := .gate }}
{{- $named := include "flotilla.namedGates" .root | fromYaml }}
{{- range $stage, $gates := (include "flotilla.declared" .root | fromYaml).gates }}
{{- if has $gate (concat $gates.enabled $gates.disabled) }}
{{- $default := ternary "true" "false" (has $gate $gates.enabled) }}
{{- if eq "true" (index $named $gate | default (index $named $stage) | default $default) }}true{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Whether Secrets may be distributed: the gate is on, and named. It is a right to the Secrets of all namespaces. */ -}}
{{- define "flotilla.distributesSecrets" -}}
{{- $named := include "flotilla.namedGates" . | fromYaml }}
{{- if or (hasKey $named "ResourceDistributionGate") (hasKey $named "AllBeta") }}
{{- include "flotilla.gate" (dict "root" . "gate" "ResourceDistributionGate") }}
{{- end }}
{{- end }}

{{- /* Whether certificates come from outside: then the webhook writes neither them nor its registration. */ -}}
{{- define "flotilla.external" -}}
{{ include "flotilla.gate" (dict "root" . "gate" "EnableExternalCerts") }}
{{- end }}

{{- /* Whether pods get the readiness gate from the webhook (install.md §3 and §6 say what switches that off). */ -}}
{{- define "flotilla.podEntry" -}}
{{- $kinds := splitList "," (.Values.manager.custom_resource_enable | default "" | nospace) | compact }}
{{- $named := include "flotilla.namedGates" . | fromYaml }}
{{- $left := and $kinds (not (has "SidecarSet" $kinds)) (not (hasKey $named "PodWebhook")) (not (hasKey $named "AllBeta")) }}
{{- $webhook := and (not $left) (include "flotilla.gate" (dict "root" . "gate" "PodWebhook")) }}
{{- if and $webhook (include "flotilla.gate" (dict "root" . "gate" "KruisePodReadinessGate")) }}true{{ end }}
{{- end }}
