{{/* Settings that the chart's own values make. The server's file would otherwise have two of them. */}}
{{- define "wva.config" -}}
{{- $config := deepCopy .Values.config }}
{{- $prometheus := default dict $config.prometheus }}
{{- if hasKey $prometheus "url" }}
{{- fail "config.prometheus.url is made from prometheus.url; set that value instead" }}
{{- end }}
{{- if hasKey $config "watchNamespace" }}
{{- fail "config.watchNamespace is made from watchNamespaces; set that value instead" }}
{{- end }}
{{- if hasKey (default dict $config.grpc) "address" }}
{{- fail "config.grpc.address is made by the chart, since the Service needs it; remove it" }}
{{- end }}
{{- if hasKey (default dict $config.grpc) "tls" }}
{{- fail "config.grpc.tls is made from tls; set tls.mode instead" }}
{{- end }}
{{- if hasKey $config "http" }}
{{- fail "config.http is made by the chart, since the probes need it; remove it" }}
{{- end }}
{{- $_ := set $prometheus "url" .Values.prometheus.url }}
{{- $_ := set $config "prometheus" $prometheus }}
{{- $grpc := dict "address" ":9090" }}
{{- if ne .Values.tls.mode "none" }}
{{- $_ := set $grpc "tls" (include "wva.tls.settings" . | fromYaml) }}
{{- end }}
{{- $_ := set $config "grpc" $grpc }}
{{- $_ := set $config "http" (dict "address" ":8080") }}
{{- with .Values.watchNamespaces }}
{{- $_ := set $config "watchNamespace" . }}
{{- end }}
{{- toYaml $config }}
{{- end }}
