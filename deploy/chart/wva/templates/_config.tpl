{{/*
The server's configuration file: config, and the settings that other values make. A setting that
would have two values is rejected.
*/}}
{{- define "wva.config" -}}
{{- $config := deepCopy (default dict .Values.config) }}
{{- $prometheus := default dict $config.prometheus }}
{{- $ownPrometheus := include "wva.config.prometheus" . | fromYaml }}
{{- range $key := keys $ownPrometheus }}
{{- if hasKey $prometheus $key }}
{{- fail (printf "config.prometheus.%s is made from the values of prometheus; set it there, and remove it from config" $key) }}
{{- end }}
{{- end }}
{{- if hasKey $prometheus "bearerToken" }}
{{- fail "config.prometheus.bearerToken would be readable in a ConfigMap; put the token into a Secret, set prometheus.existingSecret, and remove it from config" }}
{{- end }}
{{- if hasKey $config "watchNamespace" }}
{{- fail "config.watchNamespace is made from watchNamespaces, which needs roles too; set that value, and remove it from config" }}
{{- end }}
{{- if hasKey (default dict $config.kubernetes) "configMaps" }}
{{- fail "config.kubernetes.configMaps is made from configMaps, which needs roles too; set that value, and remove it from config" }}
{{- end }}
{{- if hasKey (default dict $config.grpc) "tls" }}
{{- fail "config.grpc.tls is made from tls.mode, which mounts the certificates; set that value, and remove it from config" }}
{{- end }}
{{- if or (hasKey $config "http") (hasKey (default dict $config.grpc) "address") }}
{{- fail "config.grpc.address and config.http are fixed, since the Service and the probes need them; remove them from config" }}
{{- end }}
{{- if hasKey $config "operators" }}
{{- fail "config.operators is made from the value operators, which the Service needs too; set that value, and remove it from config" }}
{{- end }}
{{- include "wva.config.switches" $config }}
{{- $grpc := merge (dict "address" ":9090") (default dict $config.grpc) }}
{{- if ne .Values.tls.mode "none" }}
{{- $_ := set $grpc "tls" (include "wva.tls.settings" . | fromYaml) }}
{{- end }}
{{- $_ := set $config "prometheus" (merge $prometheus $ownPrometheus) }}
{{- $_ := set $config "grpc" $grpc }}
{{- $_ := set $config "http" (dict "address" ":8080") }}
{{- with .Values.operators }}
{{- if .expose }}
{{- if and (ne $.Values.tls.mode "none") (not .allowedClients) }}
{{- fail "operators.expose needs the names of the operators, since KEDA has a certificate of the same authority; set operators.allowedClients" }}
{{- end }}
{{- $_ := set $config "operators" (dict "address" ":9091" "allowedClients" (eq $.Values.tls.mode "none" | ternary list .allowedClients)) }}
{{- else if .allowedClients }}
{{- fail "operators.allowedClients has no effect on a port of the loopback; set operators.expose, or remove the names" }}
{{- end }}
{{- end }}
{{- with .Values.watchNamespaces }}
{{- $_ := set $config "watchNamespace" . }}
{{- end }}
{{- if ne .Values.configMaps "off" }}
{{- $_ := set $config "kubernetes" (merge (dict "configMaps" .Values.configMaps) (default dict $config.kubernetes)) }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{/*
Helm reads an unquoted on or off as true or false, which the server accepts only for settings named
enabled.
*/}}
{{- define "wva.config.switches" -}}
{{- range $key, $value := . }}
{{- if and (kindIs "bool" $value) (ne $key "enabled") }}
{{- $_ := set $ $key (ternary "on" "off" $value) }}
{{- else if kindIs "map" $value }}
{{- include "wva.config.switches" $value }}
{{- end }}
{{- end }}
{{- end }}

{{- define "wva.config.prometheus" -}}
url: {{ .Values.prometheus.url | quote }}
{{- with .Values.prometheus.matchers }}
matchers: {{ . | quote }}
{{- end }}
{{- with .Values.prometheus.existingSecret }}
{{- if and (not .name) (or .caKey .certKey .keyKey .bearerTokenKey) }}
{{- fail "prometheus.existingSecret has keys but no name; set prometheus.existingSecret.name to the name of the Secret" }}
{{- end }}
{{- with .caKey }}
caFile: /etc/wva-tls/prometheus/{{ . }}
{{- end }}
{{- with .certKey }}
certFile: /etc/wva-tls/prometheus/{{ . }}
{{- end }}
{{- with .keyKey }}
keyFile: /etc/wva-tls/prometheus/{{ . }}
{{- end }}
{{- with .bearerTokenKey }}
bearerTokenFile: /etc/wva-tls/prometheus/{{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/*
A checksum of the settings that the server reads only when it starts, so that a change of them rolls
the Deployment and a change of others does not.
*/}}
{{- define "wva.config.restart" -}}
{{- $config := include "wva.config" . | fromYaml }}
{{- $fixed := pick $config "manifests" "kubeconfig" "kubeContext" "watchNamespace" "excludeNamespace" "namespaceSelector" "kubernetes" "grpc" "operators" "http" }}
{{- $logFormat := dig "log" "format" "" $config }}
{{- $queryOffset := dig "prometheus" "queryOffset" "" $config }}
{{- toJson (list $fixed $logFormat $queryOffset) | sha256sum }}
{{- end }}
