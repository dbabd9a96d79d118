{{/* A pod of the daemon. */}}
{{- define "sluice.pod" -}}
metadata:
  labels:
    {{- include "sluice.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    {{- if not .Values.existingConfigMap }}
    checksum/config: {{ include (print $.Template.BasePath "/configmap.yaml") . | sha256sum }}
    {{- end }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "sluice.serviceAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add .Values.graceSeconds .Values.graceMarginSeconds }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  containers:
    - name: sluice
      image: {{ include "sluice.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [run, --config, /etc/sluice/sluice.yaml]
      env:
        - name: SLUICE_STATE
          value: {{ with .Values.fleet.table }}dynamodb:{{ . }}{{ else }}/var/lib/sluice/state.db{{ end }}
        {{- if .Values.fleet.table }}
        - name: SLUICE_DAEMON
          value: http://127.0.0.1:9464
        {{- end }}
        - name: SLUICE_LISTEN
          value: 0.0.0.0:9464
        - name: SLUICE_GRACE
          value: {{ printf "%ds" (int .Values.graceSeconds) }}
        {{- if .Values.existingConfigMap }}
        - name: SLUICE_WATCH
          value: "true"
        {{- end }}
        - name: SLUICE_LOG_FORMAT
          value: json
        - name: SLUICE_LOG_LEVEL
          value: {{ .Values.logLevel }}
        {{- with .Values.env }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .Values.envFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: 9464
      # A state file that another daemon still holds is waited for, and tables
      # are asked for, before the daemon listens.
      startupProbe:
        httpGet: {path: /livez, port: http}
        periodSeconds: 5
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /livez, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      # Whether it has begun to read. /readyz, which says whether sinks work, is
      # for alerts: as a probe it would hold up the upgrade that repairs a sink.
      readinessProbe:
        httpGet: {path: /startedz, port: http}
        periodSeconds: 10
        timeoutSeconds: 5
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      {{- with .Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        {{- if not .Values.fleet.table }}
        - name: state
          mountPath: /var/lib/sluice
        {{- end }}
        - name: config
          mountPath: /etc/sluice
          readOnly: true
  volumes:
    - name: config
      configMap:
        name: {{ .Values.existingConfigMap | default (include "sluice.fullname" .) }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.fleet.table }}
  topologySpreadConstraints:
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - topologyKey: {{ . }}
      maxSkew: 1
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "sluice.selector" $ | nindent 10 }}
    {{- end }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
