{{- define "wva.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" }}
{{- end }}

{{/* A name has at most 63 characters; those of other objects add up to 12 to this one. */}}
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
app.kubernetes.io/name: {{ include "wva.name" . | toYaml }}
app.kubernetes.io/instance: {{ toYaml .Release.Name }}
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

{{/*
Nine tenths of the memory limit in MiB, so that Go collects garbage in time; empty without a limit
in Mi or Gi, and if extraEnv sets GOMEMLIMIT.
*/}}
{{- define "wva.memoryLimit" -}}
{{- $limit := dig "limits" "memory" "" (default dict .Values.resources) | toString }}
{{- range .Values.extraEnv }}
{{- if eq .name "GOMEMLIMIT" }}
{{- $limit = "" }}
{{- end }}
{{- end }}
{{- if regexMatch "^[0-9]+Gi$" $limit }}
{{- printf "%dMiB" (div (mul (trimSuffix "Gi" $limit | int64) 1024 9) 10) }}
{{- else if regexMatch "^[0-9]+Mi$" $limit }}
{{- printf "%dMiB" (div (mul (trimSuffix "Mi" $limit | int64) 9) 10) }}
{{- end }}
{{- end }}

{{/* A kind that an operator brings. Called with the root, the kind's group and version, the value and the remedy. */}}
{{- define "wva.requireKind" -}}
{{- if not (.root.Capabilities.APIVersions.Has .version) }}
{{- fail (printf "%s needs the kinds of %s, which this cluster does not have; %s. Without a cluster, name them: --api-versions %s" .value .version .remedy .version) }}
{{- end }}
{{- end }}
