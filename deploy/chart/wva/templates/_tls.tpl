{{/* The Secret of the server: tls.crt, tls.key, and ca.crt, the authorities of client certificates. */}}
{{- define "wva.tls.serverSecret" -}}
{{- $made := printf "%s-tls" (include "wva.fullname" .) }}
{{- eq .Values.tls.mode "secret" | ternary (default $made .Values.tls.secret.server) $made }}
{{- end }}

{{/* The Secret of KEDA: tls.crt, tls.key, and ca.crt, the authority of the server's certificate. */}}
{{- define "wva.tls.clientSecret" -}}
{{- $made := printf "%s-keda-client" (include "wva.fullname" .) }}
{{- eq .Values.tls.mode "secret" | ternary (default $made .Values.tls.secret.client) $made }}
{{- end }}

{{/* The name in KEDA's certificate, if the chart makes it. */}}
{{- define "wva.tls.clientName" -}}
{{- printf "keda-operator.%s.svc" (include "wva.kedaNamespace" .) }}
{{- end }}

{{/* The names of the Service, the one in scalerAddress first. */}}
{{- define "wva.tls.serverNames" -}}
{{- $name := include "wva.fullname" . -}}
- {{ $name }}.{{ .Release.Namespace }}.svc
- {{ $name }}.{{ .Release.Namespace }}.svc.{{ .Values.tls.clusterDomain }}
- {{ $name }}.{{ .Release.Namespace }}
- {{ $name }}
{{- end }}

{{- define "wva.tls.settings" -}}
{{- $clients := .Values.tls.allowedClients -}}
{{- if ne .Values.tls.mode "secret" }}
{{- $clients = prepend $clients (include "wva.tls.clientName" .) | uniq }}
{{- end -}}
certFile: /etc/wva-tls/server/tls.crt
keyFile: /etc/wva-tls/server/tls.key
clientCAFile: /etc/wva-tls/server/ca.crt
{{- with $clients }}
allowedClients:
{{ toYaml . }}
{{- end }}
{{- end }}

{{/*
A certificate of the authority for the names, as the data of a Secret. Called with the root, the
authority, the names and the existing Secret, whose certificate is kept if it is of this authority
and for these names. Then the annotation issued-for has not changed.
*/}}
{{- define "wva.tls.issue" -}}
{{- $days := .root.Values.tls.generate.days | int -}}
{{- $issuedFor := toJson (list .authority.Cert .names $days) | sha256sum -}}
{{- $certificate := "" }}
{{- $key := "" }}
{{- if and .existing (eq (dig "metadata" "annotations" "wva.dev/issued-for" "" .existing) $issuedFor) }}
{{- $certificate = index .existing.data "tls.crt" }}
{{- $key = index .existing.data "tls.key" }}
{{- else }}
{{- $made := genSignedCertWithKey (first .names) nil .names $days .authority (genPrivateKey "ecdsa") }}
{{- $certificate = b64enc $made.Cert }}
{{- $key = b64enc $made.Key }}
{{- end -}}
issuedFor: {{ $issuedFor }}
data:
  tls.crt: {{ $certificate }}
  tls.key: {{ $key }}
{{- end }}
