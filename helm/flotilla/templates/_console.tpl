{{- /* Flags of the console, from `console.*`. */ -}}
{{- define "flotilla.consoleFlags" -}}
{{- $console := .Values.console }}
{{- $files := "/var/run/flotilla/console" }}
{{- $proxy := $console.proxy }}
{{- $oidc := $console.oidc }}
- {{ printf "--console-port=%v" $console.port | quote }}
- {{ printf "--console-sign-in=%v" (join "," $console.signIn) | quote }}
- {{ printf "--console-session-duration=%v" $console.sessions.duration | quote }}
{{- with $console.url }}
- {{ printf "--console-url=%v" . | quote }}
{{- end }}
{{- if $console.tls.secret }}
- --console-tls-cert={{ $files }}/tls.crt
- --console-tls-key={{ $files }}/tls.key
{{- end }}
{{- if $console.sessions.secret }}
- --console-cookie-key-file={{ $files }}/cookie-key
{{- end }}
{{- if has "proxy" $console.signIn }}
- {{ printf "--console-proxy-user-header=%v" $proxy.userHeader | quote }}
- {{ printf "--console-proxy-group-header=%v" $proxy.groupHeader | quote }}
- {{ printf "--console-proxy-group-separator=%v" $proxy.groupSeparator | quote }}
- {{ printf "--console-proxy-extra-prefix=%v" $proxy.extraPrefix | quote }}
{{- if $proxy.secret }}
- {{ printf "--console-proxy-secret-header=%v" $proxy.secretHeader | quote }}
- --console-proxy-secret-file={{ $files }}/proxy-secret
{{- end }}
{{- if $proxy.clientAuthority.configMap }}
- --console-client-ca={{ $files }}/client-ca.crt
- {{ printf "--console-client-names=%v" (join "," $proxy.clientAuthority.names) | quote }}
{{- end }}
{{- end }}
{{- if has "oidc" $console.signIn }}
- {{ printf "--console-oidc-issuer=%v" $oidc.issuer | quote }}
- {{ printf "--console-oidc-client-id=%v" $oidc.clientId | quote }}
- {{ printf "--console-oidc-scopes=%v" (join " " $oidc.scopes) | quote }}
- {{ printf "--console-oidc-user-claim=%v" $oidc.userClaim | quote }}
- {{ printf "--console-oidc-groups-claim=%v" $oidc.groupsClaim | quote }}
- {{ printf "--console-oidc-user-prefix=%v" $oidc.userPrefix | quote }}
- {{ printf "--console-oidc-groups-prefix=%v" $oidc.groupsPrefix | quote }}
{{- if $oidc.clientSecret }}
- --console-oidc-client-secret-file={{ $files }}/oidc-client-secret
{{- end }}
{{- if $oidc.authority.configMap }}
- --console-oidc-ca={{ $files }}/oidc-ca.crt
{{- end }}
{{- end }}
{{- if has "fixed" $console.signIn }}
- {{ printf "--console-fixed-user=%v" $console.fixed.user | quote }}
- {{ printf "--console-fixed-groups=%v" (join "," $console.fixed.groups) | quote }}
{{- end }}
{{- end }}

{{- /* Secrets and certificates of the console, as sources of a projected volume. */ -}}
{{- define "flotilla.consoleFiles" -}}
{{- $console := .Values.console }}
{{- with $console.tls.secret }}
- secret: {name: {{ . }}, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}
{{- end }}
{{- with $console.sessions.secret }}
- secret: {name: {{ . }}, items: [{key: {{ $console.sessions.key }}, path: cookie-key}]}
{{- end }}
{{- with $console.proxy.secret }}
- secret: {name: {{ . }}, items: [{key: {{ $console.proxy.key }}, path: proxy-secret}]}
{{- end }}
{{- with $console.proxy.clientAuthority }}
{{- if .configMap }}
- configMap: {name: {{ .configMap }}, items: [{key: {{ .key }}, path: client-ca.crt}]}
{{- end }}
{{- end }}
{{- with $console.oidc.clientSecret }}
- secret: {name: {{ . }}, items: [{key: {{ $console.oidc.key }}, path: oidc-client-secret}]}
{{- end }}
{{- with $console.oidc.authority }}
{{- if .configMap }}
- configMap: {name: {{ .configMap }}, items: [{key: {{ .key }}, path: oidc-ca.crt}]}
{{- end }}
{{- end }}
{{- end }}

{{- define "flotilla.checkConsole" -}}
{{- $console := .Values.console }}
{{- $proxy := $console.proxy }}
{{- if hasKey (default dict .Values.services.console) "enabled" }}
{{- fail "services.console.enabled: the console has values of its own; give console.enabled" }}
{{- end }}
{{- if $console.enabled }}
{{- if and (has "proxy" $console.signIn) (not $proxy.secret) (not $proxy.clientAuthority.configMap) }}
{{- fail "console.proxy: anybody could send the proxy's headers; give secret, or clientAuthority.configMap with console.tls.secret" }}
{{- end }}
{{- if and $proxy.clientAuthority.configMap (not (and $console.tls.secret $proxy.clientAuthority.names)) }}
{{- fail "console.proxy.clientAuthority: give names of the certificate, and console.tls.secret, as clients show certificates over TLS only" }}
{{- end }}
{{- if and (has "oidc" $console.signIn) (not (and $console.oidc.issuer $console.oidc.clientId $console.url)) }}
{{- fail "console.oidc: give issuer, clientId, and console.url" }}
{{- end }}
{{- if and (has "fixed" $console.signIn) (not $console.fixed.user) }}
{{- fail "console.fixed.user: the sign-in `fixed` needs it" }}
{{- end }}
{{- if and (gt (int (default dict .Values.services.console).replicas) 1) (not $console.sessions.secret) }}
{{- fail "services.console.replicas: several replicas share sessions by their key; give console.sessions.secret" }}
{{- end }}
{{- if and (has "*" $console.impersonation.users) (not (include "flotilla.constrainedImpersonation" .)) }}
{{- fail "console.impersonation.users: before Kubernetes 1.36 the right to impersonate every user is that to do everything; name the users" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Whether the apiserver restricts an impersonator to kinds of requests. */ -}}
{{- define "flotilla.constrainedImpersonation" -}}
{{- if semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version }}true{{ end }}
{{- end }}

{{- /* A rule to impersonate these users or groups. Takes root, resource, names. */ -}}
{{- define "flotilla.impersonate" -}}
{{- if .names }}
{{- $constrained := include "flotilla.constrainedImpersonation" .root }}
- apiGroups: [{{ ternary "authentication.k8s.io" "\"\"" (not (empty $constrained)) }}]
  resources: [{{ .resource }}]
  verbs: [{{ ternary "impersonate:user-info" "impersonate" (not (empty $constrained)) | quote }}]
  {{- if not (has "*" .names) }}
  resourceNames: {{ toJson .names }}
  {{- end }}
{{- end }}
{{- end }}
