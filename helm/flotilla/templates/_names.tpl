{{- /* What is declared of the services, from the code. */ -}}
{{- define "flotilla.declared" -}}
{{ .Files.Get "files/services.yaml" }}
{{- end }}

{{- /* An image of OpenKruise's, which an upgrade with --reuse-values brings along, has nothing of ours in it. */ -}}
{{- define "flotilla.image" -}}
{{- if include "flotilla.foreignImage" . }}flotilla/flotilla:{{ .Chart.AppVersion }}
{{- else }}{{ .Values.manager.image.repository }}:{{ .Values.manager.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "flotilla.foreignImage" -}}
{{- if hasSuffix "/kruise-manager" .Values.manager.image.repository }}{{ .Values.manager.image.repository }}{{ end }}
{{- end }}

{{- define "flotilla.labels" -}}
app.kubernetes.io/name: flotilla
app.kubernetes.io/part-of: flotilla
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- /* By which a Deployment knows its pods; takes the component. */ -}}
{{- define "flotilla.selector" -}}
app.kubernetes.io/name: flotilla
app.kubernetes.io/part-of: flotilla
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- /* The agents run unless their gate is off. */ -}}
{{- define "flotilla.agents" -}}
{{- if and .Values.daemon.enabled (include "flotilla.gate" (dict "root" . "gate" "KruiseDaemon")) }}true{{ end }}
{{- end }}

{{- /* Where services and agents find the bus. */ -}}
{{- define "flotilla.natsUrl" -}}
{{ .Values.nats.url | default (printf "tls://flotilla-bus.%s.svc:4222" .Values.installation.namespace) }}
{{- end }}

{{- /* No more rights than a process needs that reads, computes and connects. */ -}}
{{- define "flotilla.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "flotilla.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
