{{- /* The services that run, as a list. */ -}}
{{- define "flotilla.services" -}}
{{- $running := list }}
{{- range $name, $facts := (include "flotilla.declared" . | fromYaml).services }}
{{- $own := default dict (index $.Values.services $name) }}
{{- $usual := ternary $.Values.console.enabled (not $facts.onDemand) (eq $name "console") }}
{{- if ternary $own.enabled $usual (hasKey $own "enabled") }}{{ $running = append $running $name }}{{ end }}
{{- end }}
{{- toYaml $running }}
{{- end }}

{{- /*
The account under which a service works that has the account that is given: the same, in the compact profile that of
all services that share a process; nothing for one that does not run. Takes root, account.
*/ -}}
{{- define "flotilla.accountOf" -}}
{{- $service := trimPrefix "flotilla-" .account }}
{{- if eq $service "nodeagent" }}
{{- if include "flotilla.agents" .root }}{{ .account }}{{ end }}
{{- else if has $service (include "flotilla.services" .root | fromYamlArray) }}
{{- $apart := (index (include "flotilla.declared" .root | fromYaml).services $service).apart }}
{{- ternary "flotilla-compact" .account (and (eq .root.Values.profile "compact") (not $apart)) }}
{{- end }}
{{- end }}

{{- /*
An object that the code declares, as these values want it; nothing if it is of a service that does not run. Roles of
services that do not run have nobody who is bound to them, and are left out. Takes root, object.
*/ -}}
{{- define "flotilla.object" -}}
{{- $ := .root }}
{{- $object := .object }}
{{- $metadata := $object.metadata }}
{{- $wanted := true }}
{{- $distribution := eq $metadata.name "flotilla-sidecar-secrets" }}
{{- if eq $object.kind "ServiceAccount" }}
{{- $wanted = eq $metadata.name (include "flotilla.accountOf" (dict "root" $ "account" $metadata.name)) }}
{{- with $.Values.serviceAccount.annotations }}{{ $_ := set $metadata "annotations" . }}{{ end }}
{{- else if hasKey $object "subjects" }}
{{- $subjects := list }}
{{- range $object.subjects }}
{{- with include "flotilla.accountOf" (dict "root" $ "account" .name) }}
{{- $subjects = append $subjects (dict "kind" "ServiceAccount" "name" . "namespace" $.Values.installation.namespace) }}
{{- end }}
{{- end }}
{{- $_ := set $object "subjects" (uniq $subjects) }}
{{- $wanted = not (empty $subjects) }}
{{- else if has $object.kind (list "ClusterRole" "Role") }}
{{- $declared := (include "flotilla.declared" $ | fromYaml).services }}
{{- $service := $metadata.name | trimPrefix "flotilla-" | trimSuffix "-role" }}
{{- $wanted = or (not (hasKey $declared $service)) (has $service (include "flotilla.services" $ | fromYamlArray)) }}
{{- else if eq $object.kind "Service" }}
{{- $_ := set (first $object.spec.ports) "targetPort" (int $.Values.manager.webhook.port) }}
{{- else if hasKey $object "webhooks" }}
{{- include "flotilla.registration" . }}
{{- end }}
{{- if and $distribution (not (include "flotilla.distributesSecrets" $)) }}
{{- $wanted = false }}
{{- end }}
{{- if $wanted }}
{{- include "flotilla.labelled" . }}
---
{{ toYaml $object }}
{{- end }}
{{- end }}

{{- /* Puts the chart's labels on an object. Takes root, object. */ -}}
{{- define "flotilla.labelled" -}}
{{- $labels := include "flotilla.labels" .root | fromYaml }}
{{- $_ := set .object.metadata "labels" (merge $labels (.object.metadata.labels | default dict)) }}
{{- end }}

{{- /*
Makes of the entries of a webhook configuration those of these values. The running webhook makes the entries from the
annotation `template` again and again, so both say the same. Takes root, object.
*/ -}}
{{- define "flotilla.registration" -}}
{{- $ := .root }}
{{- range .object.webhooks }}
{{- $_ := set . "timeoutSeconds" (int $.Values.webhookConfiguration.timeoutSeconds) }}
{{- end }}
{{- $annotations := include "flotilla.caAnnotations" $ | fromYaml }}
{{- if $.Values.webhookConfiguration.aksIntegration }}
{{- /* AKS changes webhook configurations unless they say so; the webhook would change them back, and so on. */}}
{{- $_ := set $annotations "admissions.enforcer/disabled" "true" }}
{{- end }}
{{- $_ := set $annotations "template" (toJson .object.webhooks) }}
{{- $_ := set .object.metadata "annotations" $annotations }}
{{- end }}

{{- /* By which others put their authority into webhook configurations and CRDs. */ -}}
{{- define "flotilla.caAnnotations" -}}
{{- $annotations := deepCopy .Values.externalCerts.annotations }}
{{- if .Values.certManager.enabled }}
{{- $_ := set $annotations "cert-manager.io/inject-ca-from" (printf "%s/kruise-webhook-certs" .Values.installation.namespace) }}
{{- end }}
{{- toYaml $annotations }}
{{- end }}
