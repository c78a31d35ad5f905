{{/* The Secret of the server: tls.crt, tls.key, and ca.crt, the authorities of client certificates. */}}
{{- define "wva.tls.serverSecret" -}}
{{- printf "%s-tls" (include "wva.fullname" .) }}
{{- end }}

{{/* The Secret of KEDA: tls.crt, tls.key, and ca.crt, the authorities of the server's certificate. */}}
{{- define "wva.tls.clientSecret" -}}
{{- printf "%s-keda-client" (include "wva.fullname" .) }}
{{- end }}

{{- define "wva.tls.clientName" -}}
{{- printf "keda-operator.%s.svc" (include "wva.kedaNamespace" .) }}
{{- end }}

{{/* The names of the Service, as a YAML list. */}}
{{- define "wva.tls.serverNames" -}}
{{- $name := include "wva.fullname" . }}
- {{ $name }}.{{ .Release.Namespace }}.svc
- {{ $name }}.{{ .Release.Namespace }}.svc.{{ .Values.tls.clusterDomain }}
- {{ $name }}.{{ .Release.Namespace }}
- {{ $name }}
{{- end }}

{{- define "wva.tls.settings" -}}
certFile: /etc/wva-tls/server/tls.crt
keyFile: /etc/wva-tls/server/tls.key
clientCAFile: /etc/wva-tls/server/ca.crt
allowedClients:
{{- toYaml (default (list (include "wva.tls.clientName" .)) .Values.tls.allowedClients) | nindent 0 }}
{{- end }}
