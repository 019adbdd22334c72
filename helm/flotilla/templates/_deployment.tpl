{{- /* One Deployment with its budget for disruptions. Takes what "flotilla.pod" takes, and replicas. */ -}}
{{- define "flotilla.deployment" -}}
{{- $ := .root }}
{{- $scaled := and (eq .component "webhook") $.Values.autoscaling.webhook.enabled }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: flotilla-{{ .component }}
  namespace: {{ $.Values.installation.namespace }}
  labels:
    {{- include "flotilla.labels" $ | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  {{- if not $scaled }}
  replicas: {{ .replicas }}
  {{- end }}
  minReadySeconds: 3
  revisionHistoryLimit: {{ $.Values.revisionHistoryLimit }}
  strategy:
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  selector:
    matchLabels: {{ include "flotilla.selector" .component | nindent 6 }}
  template: {{ include "flotilla.pod" . | nindent 4 }}
{{- if and $.Values.podDisruptionBudget.enabled (or $scaled (gt (int .replicas) 1)) }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: flotilla-{{ .component }}
  namespace: {{ $.Values.installation.namespace }}
  labels: {{ include "flotilla.labels" $ | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{ include "flotilla.selector" .component | nindent 6 }}
{{- end }}
{{- if $scaled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: flotilla-{{ .component }}
  namespace: {{ $.Values.installation.namespace }}
  labels: {{ include "flotilla.labels" $ | nindent 4 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: flotilla-{{ .component }}}
  minReplicas: {{ $.Values.autoscaling.webhook.minReplicas }}
  maxReplicas: {{ $.Values.autoscaling.webhook.maxReplicas }}
  metrics:
    - type: Resource
      resource:
        name: cpu
        target: {type: Utilization, averageUtilization: {{ $.Values.autoscaling.webhook.targetCPUUtilizationPercentage }}}
{{- end }}
{{- end }}
