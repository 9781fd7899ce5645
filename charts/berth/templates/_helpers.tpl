{{- /* Names follow the release: RELEASE-berth, or "berth" alone when the release is called so. */ -}}
{{- define "berth.fullname" -}}
{{- $name := .Values.nameOverride | default "berth" }}
{{- .Values.fullnameOverride | default (ternary $name (printf "%s-%s" .Release.Name $name) (eq .Release.Name $name)) | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- /* Name of a program's service account: (dict "root" $ "component" "controller") */ -}}
{{- define "berth.account" -}}
{{- $account := (index .root.Values .component).serviceAccount | default dict }}
{{- if and (eq (toString $account.create) "false") (not $account.name) }}
{{- fail (printf "%s.serviceAccount.create is false, but %s.serviceAccount.name is empty; name the service account that the program has." .component .component) }}
{{- end }}
{{- $account.name | default (printf "%s-%s" (include "berth.fullname" .root) .component) }}
{{- end }}

{{- define "berth.serviceAccount" -}}
{{- $account := (index .root.Values .component).serviceAccount | default dict }}
{{- if ne (toString $account.create) "false" }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "berth.account" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "berth.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  {{- with $account.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false
{{- end }}
{{- end }}

{{- /* Prefix of the ClusterRoles for users, which are global to the cluster: outside the usual namespace they carry the namespace. */ -}}
{{- define "berth.userRoles" -}}
{{- if ne .Release.Namespace "berth-system" }}{{ .Release.Namespace }}:{{ end }}{{ include "berth.fullname" . }}
{{- end }}

{{- define "berth.labels" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* (dict "root" $ "component" "controller") */ -}}
{{- define "berth.selector" -}}
app.kubernetes.io/name: berth
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* A chart that `make charts` has packed names the images of its commit in its appVersion. That of a checkout names none. */ -}}
{{- define "berth.tag" -}}
{{- if .Values.image.tag }}
{{- .Values.image.tag }}
{{- else if eq .Chart.AppVersion .Chart.Version }}
{{- fail "image.tag is empty, and the chart of a checkout does not know which images you have built. Install the chart that `make charts` packs, which does, or set image.tag to the tag in build/images/tag." }}
{{- else }}
{{- .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- /* (dict "root" $ "image" .Values.controller.image) */ -}}
{{- define "berth.image" -}}
{{- with .root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end }}{{ .image.repository }}
{{- if .image.digest }}@{{ .image.digest }}{{ else }}:{{ include "berth.tag" .root }}{{ end }}
{{- end }}

{{- /* Variables beside those of the values: (dict "root" $ "component" "controller") */ -}}
{{- define "berth.extraEnv" -}}
{{- $component := .component }}
{{- range (index .root.Values .component).extraEnv }}
{{- if hasPrefix "BERTH_" .name }}
{{- fail (printf "%s.extraEnv: %s is a setting of Berth; set the value of the chart for it, which helm show values lists." $component .name) }}
{{- end }}
{{- end }}
{{- with (index .root.Values .component).extraEnv }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- /* Pod settings that the controller and the API share: (dict "root" $ "values" .Values.controller) */ -}}
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

{{- /* (dict "maxSurge" 1 "maxUnavailable" 0) */ -}}
{{- /* Defaults of the API server are written out: tools then see no difference between an object and its manifest. */ -}}
{{- define "berth.podDefaults" -}}
restartPolicy: Always
dnsPolicy: ClusterFirst
schedulerName: default-scheduler
{{- end }}

{{- define "berth.deploymentDefaults" -}}
progressDeadlineSeconds: 600
revisionHistoryLimit: 10
strategy:
  type: RollingUpdate
  rollingUpdate:
    maxSurge: {{ .maxSurge }}
    maxUnavailable: {{ .maxUnavailable }}
{{- end }}

{{- define "berth.containerDefaults" -}}
terminationMessagePath: /dev/termination-log
terminationMessagePolicy: File
{{- end }}

{{- /* A count as the API server writes quantities: 5000 is 5k. */ -}}
{{- define "berth.count" -}}
{{- $count := int64 . }}
{{- $suffix := "" }}
{{- range list "k" "M" "G" }}
{{- if and (gt $count 0) (eq (mod $count 1000) 0) }}
{{- $count = div $count 1000 }}
{{- $suffix = . }}
{{- end }}
{{- end }}
{{- printf "%d%s" $count $suffix }}
{{- end }}

{{- /* A node that is lost or drained takes one replica with it, where there is another node: (dict "root" $ "component" "controller") */ -}}
{{- define "berth.spread" -}}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "berth.selector" . | nindent 8 }}
    # The pods of one revision, so that those which an update replaces do not count.
    matchLabelKeys: [pod-template-hash]
{{- end }}

{{- /* One replica at a time may be evicted: (dict "root" $ "component" "controller" "values" .Values.controller) */ -}}
{{- define "berth.disruptionBudget" -}}
{{- if and (gt (int .values.replicas) 1) (dig "podDisruptionBudget" "enabled" true .values) }}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "berth.fullname" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "berth.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  maxUnavailable: 1
  # A replica that is not ready serves nobody: it must not hold up the drain of its node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels:
      {{- include "berth.selector" . | nindent 6 }}
{{- end }}
{{- end }}

{{- define "berth.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* Rights of the controller on sessions and on objects that belong to them, in the cluster or in one namespace. */ -}}
{{- define "berth.controllerRules" -}}
- apiGroups: [berth.dev]
  resources: [sessions]
  # Creates sessions that build environments, and deletes sessions after ttlAfterFinished or ttlAfterSuspended.
  verbs: [get, list, watch, create, delete]
- apiGroups: [berth.dev]
  resources: [environments]
  verbs: [get, list, watch]
- apiGroups: [berth.dev]
  resources: [turns]
  # Deletes turns that exceed a session's history. The turn of a session's input has the session's requester.
  verbs: [get, list, watch, create, patch, delete, setrequester]
- apiGroups: [berth.dev]
  resources: [approvals]
  # Deletes none: OwnerReferencesPermissionEnforcement asks for `delete` where a Turn is made the owner of an Approval.
  verbs: [get, list, watch, patch, delete]
- apiGroups: [berth.dev]
  resources: [sessions/status, turns/status, environments/status]
  verbs: [update]
{{- if .Values.controller.sessionPools }}
- apiGroups: [berth.dev]
  resources: [sessionpools]
  verbs: [get, list, watch]
- apiGroups: [berth.dev]
  resources: [sessionpools/status]
  verbs: [update]
{{- end }}
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
# NetworkPolicies: one for the pods of each class in each namespace.
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
  # Watches a pod while a client follows its log or events.
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [berth.dev]
  resources: [turns]
  verbs: [get, list, watch, create, patch]
- apiGroups: [berth.dev]
  resources: [approvals]
  verbs: [get, list, create]
# What it creates names the caller as requester; templates/admission.yaml asks for this verb.
- apiGroups: [berth.dev]
  resources: [sessions, turns, approvals]
  verbs: [setrequester]
- apiGroups: [berth.dev]
  resources: [blobs]
  verbs: [get]
# An Event with a name that follows from the Idempotency-Key lets one request at a time use it.
- apiGroups: [""]
  resources: [events]
  verbs: [get, create]
# Reads events of agents, which are lines of the pod's log.
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
# A pod without a runner has the redaction rules of its log with it.
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
{{- if (.Values.api.enter).enabled }}
{{- if not (.Values.admissionPolicies | default (dict "enabled" true)).enabled }}
{{- fail "api.enter.enabled needs admissionPolicies.enabled: a policy holds the API's account to the helper in pods of sessions, and without it the account could run anything in every pod" }}
{{- end }}
# Starts the helper in the pod of a session; templates/admission.yaml refuses everything else. A WebSocket is authorised as get and as create.
- apiGroups: [""]
  resources: [pods/exec]
  verbs: [get, create]
{{- end }}
{{- end }}

{{- /* "https" where the API has a certificate, else "http": the name of its port. */ -}}
{{- define "berth.apiScheme" -}}
{{- if (.Values.api.tls).secretName }}https{{ else }}http{{ end }}
{{- end }}

{{- define "berth.apiPort" -}}
{{- .Values.api.service.port | default (ternary 443 80 (eq (include "berth.apiScheme" .) "https")) }}
{{- end }}

{{- /* Milliseconds of a duration such as 1h30m. */ -}}
{{- define "berth.milliseconds" -}}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 }}
{{- $total := 0.0 }}
{{- range $part := regexFindAll "[0-9.]+(ms|s|m|h)" . -1 }}
{{- $total = addf $total (mulf (regexFind "^[0-9.]+" $part) (get $units (regexFind "[a-z]+$" $part))) }}
{{- end }}
{{- $total }}
{{- end }}

{{- /* Amount of a Kubernetes quantity, which is a text such as 512Mi or a number. */ -}}
{{- define "berth.amount" -}}
{{- if kindIs "string" . }}
{{- $units := dict "" 1 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- mulf (regexFind "^[0-9.]+" .) (get $units (regexFind "[A-Za-z]*$" .)) }}
{{- else }}
{{- float64 . }}
{{- end }}
{{- end }}
