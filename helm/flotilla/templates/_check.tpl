{{- /* What the schema cannot say. Better said now than looked for later. */ -}}
{{- define "flotilla.check" -}}
{{- include "flotilla.checkOriginal" . }}
{{- include "flotilla.checkServices" . }}
{{- include "flotilla.checkSettings" (dict "root" . "where" "settings" "given" .Values.settings) }}
{{- include "flotilla.checkGates" . }}
{{- include "flotilla.checkConsole" . }}
{{- with .Values.webhookConfiguration.clientAuthority }}
{{- if and .configMap .secret }}
{{- fail "webhookConfiguration.clientAuthority: the authority is in a ConfigMap or in a Secret; give one of configMap and secret" }}
{{- end }}
{{- if and .names (not (or .configMap .secret)) }}
{{- fail "webhookConfiguration.clientAuthority.names: nobody is asked for a certificate without an authority; give configMap or secret, too" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "flotilla.checkServices" -}}
{{- $services := (include "flotilla.declared" . | fromYaml).services }}
{{- range $name, $own := .Values.services }}
{{- if not (hasKey $services $name) }}
{{- fail (printf "services.%s: there is no such service; there are %s" $name (keys $services | sortAlpha | join ", ")) }}
{{- end }}
{{- $facts := index $services $name }}
{{- if and (not $facts.shards) (hasKey (default dict $own) "shards") }}
{{- fail (printf "services.%s.shards: this service has no shards, its replicas share the work anyway" $name) }}
{{- end }}
{{- if and (eq $name "statemetrics") (gt (int (default dict $own).replicas) 1) }}
{{- fail (printf "services.%s.replicas: each replica serves all metrics, so sums over them would be too high; give 1" $name) }}
{{- end }}
{{- if and (eq $name "statemetrics") (default dict $own).enabled (eq $.Values.profile "compact") (gt (int $.Values.compact.replicas) 1) }}
{{- fail (printf "services.%s.enabled: each replica serves all metrics, so sums over them would be too high; with it compact.replicas has to be 1" $name) }}
{{- end }}
{{- include "flotilla.checkSettings" (dict "root" $ "where" (printf "services.%s.settings" $name) "given" (default dict $own).settings) }}
{{- end }}
{{- $running := include "flotilla.services" . | fromYamlArray }}
{{- range $name, $facts := $services }}
{{- if and $facts.called (not (has $name $running)) }}
{{- fail (printf "services.%s.enabled: it cannot be left out; without it nobody converts objects of our kinds, and the apiserver refuses to write them" $name) }}
{{- end }}
{{- end }}
{{- if and (include "flotilla.agents" .) (not (has "watcher" $running)) }}
{{- fail "services.watcher.enabled: node agents hear nothing without the watcher; set daemon.enabled=false, too" }}
{{- end }}
{{- end }}

{{- /* Takes root, where (the value's name), given (the settings). */ -}}
{{- define "flotilla.checkSettings" -}}
{{- $known := (include "flotilla.declared" .root | fromYaml).settings }}
{{- $where := .where }}
{{- range $flag, $_ := .given }}
{{- if not (has $flag $known) }}
{{- fail (printf "%s.%s: there is no such setting; docs/operations.md lists them" $where $flag) }}
{{- end }}
{{- with index (include "flotilla.valueOfSetting" $ | fromYaml) $flag }}
{{- fail (printf "%s.%s: the chart sets it; give %s" $where $flag .) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Settings that follow from values on which more than the setting depends: ports, Secrets, names. */ -}}
{{- define "flotilla.valueOfSetting" -}}
feature-gates: featureGates
custom-resource-enable: manager.custom_resource_enable
system-namespace: installation.namespace
metrics-port: manager.metrics.port
state-metrics-port: manager.stateMetrics.port
health-port: manager.healthProbe.port
webhook-port: manager.webhook.port
console-port: console.port
console-url: console.url
console-sign-in: console.signIn
console-tls-cert: console.tls.secret
console-tls-key: console.tls.secret
console-proxy-user-header: console.proxy.userHeader
console-proxy-group-header: console.proxy.groupHeader
console-proxy-group-separator: console.proxy.groupSeparator
console-proxy-extra-prefix: console.proxy.extraPrefix
console-proxy-secret-header: console.proxy.secretHeader
console-proxy-secret-file: console.proxy.secret
console-client-ca: console.proxy.clientAuthority.configMap
console-client-names: console.proxy.clientAuthority.names
console-oidc-issuer: console.oidc.issuer
console-oidc-client-id: console.oidc.clientId
console-oidc-client-secret-file: console.oidc.clientSecret
console-oidc-ca: console.oidc.authority.configMap
console-oidc-scopes: console.oidc.scopes
console-oidc-user-claim: console.oidc.userClaim
console-oidc-groups-claim: console.oidc.groupsClaim
console-oidc-user-prefix: console.oidc.userPrefix
console-oidc-groups-prefix: console.oidc.groupsPrefix
console-cookie-key-file: console.sessions.secret
console-session-duration: console.sessions.duration
console-fixed-user: console.fixed.user
console-fixed-groups: console.fixed.groups
webhook-client-ca: webhookConfiguration.clientAuthority.configMap
webhook-client-names: webhookConfiguration.clientAuthority.names
log-level: manager.log.level
log-format: manager.loggingFormat
nats: nats.url
shards: services.<name>.shards
watcher-shards: services.watcher.shards
bus-copies: nats.replicas
cri-socket: daemon.socketFile
max-workers-for-pull-image: daemon.maxWorkersForPullImage
{{- end }}

{{- define "flotilla.checkGates" -}}
{{- $known := list "AllAlpha" "AllBeta" }}
{{- range (include "flotilla.declared" . | fromYaml).gates }}{{ $known = concat $known .enabled .disabled }}{{ end }}
{{- range $name, $_ := (include "flotilla.namedGates" . | fromYaml) }}
{{- if not (has $name $known) }}{{ fail (printf "featureGates: there is no gate %s" $name) }}{{ end }}
{{- end }}
{{- end }}
