{{- /*
The pod of one service, or of all of them in the compact profile. Takes root, name, component, services (those that the
process runs), own (services.<name>), facts, resources.
*/ -}}
{{- define "flotilla.pod" -}}
{{- $ := .root }}
{{- $own := .own }}
{{- $manager := $.Values.manager }}
{{- $placement := include "flotilla.placement" $ | fromYaml }}
{{- $callers := $.Values.webhookConfiguration.clientAuthority }}
{{- $believes := and .facts.called (or $callers.configMap $callers.secret) }}
metadata:
  labels:
    {{- include "flotilla.selector" .component | nindent 4 }}
    {{- if .facts.called }}
    control-plane: controller-manager
    {{- end }}
  annotations:
    kubectl.kubernetes.io/default-container: {{ .component }}
    checksum/settings: {{ include "flotilla.settings" $ | sha256sum }}
    {{- with $own.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: flotilla-{{ .component }}
  enableServiceLinks: false
  {{- with $.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $.Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- if and .facts.called $manager.hostNetwork }}
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  {{- end }}
  securityContext: {{ include "flotilla.podSecurity" $ | nindent 4 }}
  terminationGracePeriodSeconds: 30
  nodeSelector: {{ toYaml (default $placement.nodeSelector $own.nodeSelector) | nindent 4 }}
  tolerations: {{ toYaml (default $placement.tolerations $own.tolerations) | nindent 4 }}
  affinity:
    {{- with $placement.nodeAffinity }}
    nodeAffinity: {{ toYaml . | nindent 6 }}
    {{- end }}
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
        - weight: 100
          podAffinityTerm:
            topologyKey: kubernetes.io/hostname
            labelSelector: {matchLabels: {{ include "flotilla.selector" .component | fromYaml | toJson }}}
  topologySpreadConstraints:
    {{- if $manager.topologySpreadConstraints }}
    {{- toYaml $manager.topologySpreadConstraints | nindent 4 }}
    {{- else }}
    - maxSkew: 1
      topologyKey: topology.kubernetes.io/zone
      whenUnsatisfiable: ScheduleAnyway
      matchLabelKeys: [pod-template-hash]
      labelSelector: {matchLabels: {{ include "flotilla.selector" .component | fromYaml | toJson }}}
    {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "flotilla.image" $ }}
      imagePullPolicy: {{ $manager.image.pullPolicy }}
      {{- if eq .component "compact" }}
      command: [flotilla]
      {{- else }}
      command: [flotilla-{{ .component }}]
      {{- end }}
      args:
        {{- if eq .component "compact" }}
        - run
        {{- range .services }}
        - {{ . }}
        {{- end }}
        {{- end }}
        - --config=/etc/flotilla/settings.yaml
        - --nats={{ include "flotilla.natsUrl" $ }}
        - --nats-creds=/var/run/flotilla/bus{{ if ne .component "compact" }}/{{ .component }}.seed{{ end }}
        - --nats-ca=/var/run/flotilla/bus/ca.crt
        {{- if and (has "watcher" .services) (or (not $.Values.nats.url) (include "flotilla.agents" $)) }}
        - --nats-issuer=/var/run/flotilla/bus/issuer.seed
        {{- end }}
        {{- if $believes }}
        - --webhook-client-ca=/var/run/flotilla/callers/ca.crt
        {{- with $callers.names }}
        - --webhook-client-names={{ join "," . }}
        {{- end }}
        {{- end }}
        {{- if has "console" .services }}
        {{- include "flotilla.consoleFlags" $ | nindent 8 }}
        {{- end }}
        {{- if $own.shards }}
        - --{{ .facts.shards }}={{ $own.shards }}
        {{- end }}
        {{- range $flag, $value := $own.settings }}
        - --{{ $flag }}={{ $value }}
        {{- end }}
      env:
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - name: POD_NAMESPACE
          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        - name: POD_UID
          valueFrom: {fieldRef: {fieldPath: metadata.uid}}
        # A container that is started again follows one that has surely ended: it need not wait for its leases to expire.
        - name: FLOTILLA_LEASE_HOLDER
          value: $(POD_NAME)-$(POD_UID)
      ports:
        - {name: metrics, containerPort: {{ $manager.metrics.port }}}
        - {name: health, containerPort: {{ $manager.healthProbe.port }}}
        {{- if has "statemetrics" .services }}
        - {name: state-metrics, containerPort: {{ $manager.stateMetrics.port }}}
        {{- end }}
        {{- if has "console" .services }}
        - {name: console, containerPort: {{ $.Values.console.port }}}
        {{- end }}
        {{- if .facts.called }}
        - {name: https, containerPort: {{ $manager.webhook.port }}}
        {{- end }}
      startupProbe:
        httpGet: {path: /healthz, port: health}
        periodSeconds: 1
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: health}
        periodSeconds: 10
        timeoutSeconds: 5
      readinessProbe:
        httpGet: {path: /readyz, port: health}
        periodSeconds: 3
        timeoutSeconds: 5
      resources: {{ toYaml .resources | nindent 8 }}
      securityContext: {{ include "flotilla.containerSecurity" $ | nindent 8 }}
      volumeMounts:
        - {name: settings, mountPath: /etc/flotilla, readOnly: true}
        - {name: bus, mountPath: /var/run/flotilla/bus, readOnly: true}
        - {name: tmp, mountPath: /tmp}
        {{- if has "console" .services }}
        - {name: console, mountPath: /var/run/flotilla/console, readOnly: true}
        {{- end }}
        {{- if $believes }}
        - {name: callers, mountPath: /var/run/flotilla/callers, readOnly: true}
        {{- end }}
  volumes:
    - name: settings
      configMap: {name: flotilla-settings}
    - name: bus
      projected:
        defaultMode: 0440
        sources:
          {{- range .services }}
          - secret: {name: flotilla-bus-{{ . }}}
          {{- end }}
    - name: tmp
      emptyDir: {medium: Memory, sizeLimit: 16Mi}
    {{- if has "console" .services }}
    - name: console
      projected:
        defaultMode: 0440
        sources: {{ include "flotilla.consoleFiles" $ | default "[]" | nindent 10 }}
    {{- end }}
    {{- if $believes }}
    - name: callers
      {{- $items := list (dict "key" $callers.key "path" "ca.crt") }}
      {{- if $callers.secret }}
      secret: {{ dict "secretName" $callers.secret "items" $items | toYaml | nindent 8 }}
      {{- else }}
      configMap: {{ dict "name" $callers.configMap "items" $items | toYaml | nindent 8 }}
      {{- end }}
    {{- end }}
{{- end }}

{{- /* The settings file that all services share. */ -}}
{{- define "flotilla.settings" -}}
{{- $settings := dict
  "log-level" (toString .Values.manager.log.level)
  "log-format" (.Values.manager.loggingFormat | default "json")
  "metrics-port" (int .Values.manager.metrics.port)
  "state-metrics-port" (int .Values.manager.stateMetrics.port)
  "health-port" (int .Values.manager.healthProbe.port)
  "webhook-port" (int .Values.manager.webhook.port)
  "system-namespace" .Values.installation.namespace
}}
{{- with include "flotilla.featureGates" . }}{{ $_ := set $settings "feature-gates" . }}{{ end }}
{{- with .Values.manager.custom_resource_enable }}{{ $_ := set $settings "custom-resource-enable" . }}{{ end }}
{{- if gt (int .Values.nats.replicas) 1 }}{{ $_ := set $settings "bus-copies" 3 }}{{ end }}
{{- toYaml (merge (deepCopy .Values.settings) $settings) }}
{{- end }}
