{{- /* Names follow the release; "berth" alone when the release is called so. */ -}}
{{- define "berth.fullname" -}}
{{- if eq .Release.Name "berth" }}berth{{ else }}{{ printf "%s-berth" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "berth.labels" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* (dict "root" $ "component" "controller") */ -}}
{{- define "berth.selector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* (dict "root" $ "image" .Values.controller.image) */ -}}
{{- define "berth.image" -}}
{{- with .root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .image.repository }}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}{{ end }}
{{- end }}

{{- /* What both programs' pods have in common: (dict "root" $ "values" .Values.controller) */ -}}
{{- define "berth.podSettings" -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "berth.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* What the controller may do with what belongs to sessions, in the cluster or in one namespace. */ -}}
{{- define "berth.controllerRules" -}}
- apiGroups: [berth.dev]
  resources: [sessions]
  # Creates those that build environments, and deletes what is past ttlAfterFinished or ttlAfterSuspended.
  verbs: [get, list, watch, create, delete]
- apiGroups: [berth.dev]
  resources: [environments]
  verbs: [get, list, watch]
- apiGroups: [berth.dev]
  resources: [turns]
  # Deletes what is beyond a session's history.
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [berth.dev]
  resources: [approvals]
  verbs: [get, list, watch, patch]
- apiGroups: [berth.dev]
  resources: [sessions/status, turns/status, environments/status]
  verbs: [update]
- apiGroups: [berth.dev]
  resources: [blobs]
  verbs: [get, list, create, delete]
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
# Kubernetes asks for get and for create before it opens an attach over WebSocket.
- apiGroups: [""]
  resources: [pods/attach]
  verbs: [get, create]
{{- if .Values.controller.agentFiles }}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch]
{{- end }}
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, create]
# One for the pods of each class in each namespace.
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, update, delete]
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
- apiGroups: [""]
  resources: [events]
  verbs: [get, create, patch]
{{- end }}

{{- /* The API acts for callers that it has authenticated and authorised with the cluster's own RBAC. */ -}}
{{- define "berth.apiRules" -}}
- apiGroups: [berth.dev]
  resources: [sessions]
  # Watches one while its logs or events are followed.
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [berth.dev]
  resources: [turns]
  verbs: [get, list, watch, create, patch]
- apiGroups: [berth.dev]
  resources: [approvals]
  verbs: [get, list, create]
- apiGroups: [berth.dev]
  resources: [blobs]
  verbs: [get]
# An Event with a name that follows from the Idempotency-Key lets one request at a time use it.
- apiGroups: [""]
  resources: [events]
  verbs: [get, create]
# What agents tell while they work stands in the log of their pod.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
{{- end }}
