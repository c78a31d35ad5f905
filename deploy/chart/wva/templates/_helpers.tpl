{{- define "wva.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Names of derived objects add up to 12 characters, and a name has at most 63. */}}
{{- define "wva.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "wva.selectorLabels" -}}
app.kubernetes.io/name: {{ include "wva.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "wva.labels" -}}
{{ include "wva.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "wva.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "wva.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is empty; name an existing ServiceAccount, or set serviceAccount.create to true" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "wva.kedaNamespace" -}}
{{- default .Release.Namespace .Values.keda.namespace }}
{{- end }}

{{- define "wva.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}
